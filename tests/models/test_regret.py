"""Regret of the parity ensemble where the best policy under a bound is known: FICO's tables."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from fairall.config.compose import compose_config
from fairall.data.dataset import dataset
from fairall.data.fico import Fico
from fairall.experiment import job
from fairall.models.learner import Learner
from fairall.online.evaluation import Evaluator
from fairall.online.loop import OnlineLearning
from fairall.online.training import initially_decided
from fairall.runtime.process import prepare_processor
from fairall.runtime.randomness import SeedStreams
from tests.conftest import warm_up


def best_value(source: Fico, cost: float, gap: float) -> float:
    """Greatest utility per person of a policy whose acceptance rates differ by at most `gap`."""
    scores = source.scores
    gain = scores.group_share[:, None] * scores.share * (scores.repays - cost)
    between = np.concatenate([-scores.share[0], scores.share[1]])
    solved = linprog(-gain.ravel(), A_ub=[between, -between], b_ub=[gap, gap], bounds=(0.0, 1.0))
    assert solved.success
    return float(-solved.fun)


def regrets(seeds: int, time_steps: int, *words: str) -> tuple[np.ndarray, np.ndarray]:
    """Regret and gap of the policy after every time step, by the tables, shapes (T, E).

    Regret is what the best policy of the same gap earns more, so that neither unfairness nor chance earns
    anything.
    """
    prepare_processor()
    of = [f"seeds={seeds}", f"schedule.time_steps={time_steps}", f"evaluation.window=[0,{time_steps}]"]
    made = job(compose_config("model=parity_ensemble", "dataset=fico", *of, *words))
    source, learner, cost = dataset(made.config.dataset), made.learner, made.config.cost.value
    assert isinstance(source, Fico)
    warm_up(learner, initially_decided(made.initial_policy, made.config, made.data))
    known = list(range(seeds))
    x = made.data.scaler.transform(source.scores.score[:, None])
    tables: list[np.ndarray] = []

    def measure() -> None:
        tables.append(acceptance(learner, x, known))

    evaluation = Evaluator(made.data.test, cost, known)
    OnlineLearning(learner, made.world, evaluation, known).run(time_steps, lambda **_: None, measure)
    levels = np.linspace(0.0, 1.0, 201)
    best = [best_value(source, cost, gap) for gap in levels]
    regret, gap = np.empty((2, time_steps, seeds))
    for t, table in enumerate(tables):
        for e, policy in enumerate(table):
            rates = (source.scores.share * policy).sum(1)
            gap[t, e] = abs(rates[1] - rates[0])
            regret[t, e] = np.interp(gap[t, e], levels, best) - source.scores.value(policy, cost)
    return regret, gap


def acceptance(learner: Learner, x: torch.Tensor, seeds: list[int]) -> np.ndarray:
    """π of every score by group, shape (E, 2, R)."""
    stacked = x.expand(len(seeds), -1, -1)
    streams = SeedStreams(seeds, "scores of FICO")
    by_group = [learner.propensity(stacked, torch.full(stacked.shape[:2], s), streams) for s in (-1.0, 1.0)]
    return torch.stack(by_group, 1).double().numpy()


@pytest.mark.whole
def test_average_regret_falls_as_the_root_of_time_or_faster() -> None:
    # The selected learning rate, a constant one, leaves regret that no longer falls (docs/frontier.md).
    regret, gap = regrets(3, 120, "model.quantile=0.5", "model.learning_rate=0.0003")
    assert (regret > -1e-4).all()
    average = regret.mean(1).cumsum() / np.arange(1, len(regret) + 1)
    slope = np.polyfit(np.log(np.arange(10, len(average))), np.log(average[10:]), 1)[0]
    assert slope < -0.5
    assert gap[60:].mean() < 0.08
