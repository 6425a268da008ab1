"""What every run is measured against: accepting everybody, nobody, or at random."""

import contextlib
import io
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure

from benchmarks.in_process import undrawn
from fairall.config.compose import compose_config
from fairall.display.format import CAUTION
from fairall.display.progress import Display
from fairall.errors import FairAllError
from fairall.experiment import run
from fairall.measuring import summary
from fairall.measuring.references import RUN, reference_histories, tables
from fairall.models.oracle import Oracle, oracles
from fairall.online.training import Training
from fairall.results import figures
from fairall.results.result import Result
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Checkpoint
from tests.conftest import LOANS, cache_in, no_cache, training_of
from tests.worlds.conftest import ALL_PARTS

pytestmark = pytest.mark.usefixtures("undrawn")

QUICK = ["preset=quick", "schedule.phase1_epochs=1", "schedule.warm_up_epochs=2", "tracking.enabled=false"]
Runs = Callable[..., tuple[Result, str]]


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Result and terminal output, in one line, of a quick run."""

    monkeypatch.setattr(figures, "save_figure", undrawn)

    def made(*words: str) -> tuple[Result, str]:
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            result = run(compose_config(*QUICK, f"outputs_dir={tmp_path}", *words), display=Display())
        return result, " ".join(shown.getvalue().split())

    return made


@pytest.mark.whole
@pytest.mark.parametrize("dataset", ["credit", "synthetic"])
def test_references_are_what_a_run_of_them_gives(dataset: str, quick: Runs) -> None:
    learnt, _ = quick("model=unfairlog", f"dataset={dataset}")
    for name in ("accept_all", "reject_all", "oracle", "oracle_fair"):
        alone, _ = quick(f"model={name}", f"dataset={dataset}")
        reference = learnt.references.loc[name]
        pd.testing.assert_frame_equal(alone.references.loc[name], reference, check_exact=True)
        own = alone.aggregate.loc[reference.index]
        # Of the applicants tied at a threshold of parity others are drawn.
        atol = 0.01 if "fair" in name else 1e-7
        pd.testing.assert_series_equal(own["mean"], reference["mean"], atol=atol, check_names=False)
        assert np.isnan(reference.loc["effective_cfu", "mean"]) == (dataset == "credit")
    free, equal = (learnt.references.loc[name, "mean"] for name in ("oracle", "oracle_fair"))
    assert free["effective_dpu_pooled"] > equal["effective_dpu_pooled"]
    # On credit parity costs less than the noise of 700 people.
    assert free["effective_utility"] > equal["effective_utility"] - (0.005 if dataset == "credit" else 0.0)


@pytest.mark.whole
def test_constant_policies_do_as_they_are_called(quick: Runs) -> None:
    everybody, _ = quick("model=accept_all")
    means = everybody.aggregate["mean"]
    assert means["mean_acceptance"] == 1.0
    assert means["mean_utility"] == pytest.approx(0.18)
    assert "collapsed" not in " ".join(everybody.warnings)
    # Longer than the steps after which a policy that accepts nobody is made to explore.
    nobody, shown = quick("model=reject_all", "schedule.time_steps=15", "exploration.after=2")
    assert set(nobody.references.loc["reject_all", "mean"].dropna()) == {0.0}
    assert nobody.aggregate.loc["effective_utility", "mean"] == 0.0
    assert nobody.per_seed["longest_rejection"].iloc[0] == 15
    for words in ("hparams", "accepted nobody for"):
        assert words not in shown
    chance = quick("model=random")[0].aggregate["mean"]
    assert chance["mean_acceptance"] == pytest.approx(0.5)
    assert chance["effective_utility"] == pytest.approx(0.09, abs=0.03)


def kept_figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures of the runs that follow, which are kept instead of drawn."""
    drawn: list[Figure] = []

    def keep(figure: Figure, path: Path) -> None:
        drawn.append(figure)
        undrawn(figure, path)

    monkeypatch.setattr(figures, "save_figure", keep)
    return drawn


def test_a_run_shows_its_references_and_the_noise_of_its_people(
    quick: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = kept_figures(monkeypatch)
    result, shown = quick("model=unfairlog")
    people, of = result.evaluation, result.references["mean"]
    assert re.search(r"│ mean_utility │ [−\d. ±]+ │ [\[\]−\d., ]+ │ 18.00 │", shown)
    assert people.people == 150
    errors = [float(error or 0.0) for error in (people.utility_standard_error, people.dpu_standard_error)]
    assert 0.02 < errors[0] < 0.05
    assert 0.0 < errors[1] < 0.2
    utility, dpu = (f"a standard error of {100 * error:.1f}" for error in errors)
    for said in (shown, (result.path / "model_card.md").read_text()):
        assert f"the utility {utility} and the DPU {dpu}" in said
    (figure,) = drawn
    for told in (result.warnings[0], shown.split("┃")[0], " ".join(figure.get_suptitle().split())):
        assert CAUTION in told
    levels = [{line.get_label(): line.get_ydata()[0] for line in axes.lines} for axes in figure.axes[:2]]
    assert levels[0]["accept everybody"] == pytest.approx(18.0)
    assert levels[0]["accept nobody"] == 0.0
    assert "accept everybody" not in levels[1]
    knows = {"oracle": "knows every label", "oracle_fair": "knows every label, with parity"}
    for level, measure in zip(levels, ("mean_utility", "mean_dpu"), strict=True):
        assert [level[label] for label in knows.values()] == pytest.approx(
            [100 * of[policy, measure] for policy in knows]
        )
    (row,) = (line for line in shown.splitlines() if " mean_utility " in line)
    assert f"{100 * of['oracle', 'mean_utility']:.2f}" in row


def test_a_collapsed_policy_is_a_warning(quick: Runs) -> None:
    # ½ is above what a thresholded policy asks for only where it accepts everybody: c next to 0.
    result, shown = quick("model=unfairlog", "model.decision=deterministic", "cost.value=0.01")
    for told in (" ".join(result.warnings), shown):
        assert "collapsed to accepting everybody" in told
    everybody = result.references.loc[("accept_all", "mean_utility"), "mean"]
    assert result.aggregate.loc["mean_utility", "mean"] == pytest.approx(everybody, abs=0.01)


def test_an_initial_policy_that_accepts_nobody_is_a_warning(quick: Runs) -> None:
    result, _ = quick("model=unfairlog", "initial_policy.intercept=-1000")
    assert "initial policy accepted nobody" in " ".join(result.warnings)


def test_what_was_done_with_unlabelled_people_is_in_the_summary(quick: Runs) -> None:
    words = """
        model=fairall_II dataset=csv dataset.label=repaid dataset.positive=yes dataset.sensitive=sex
        dataset.advantaged=male dataset.decision=decision dataset.accepted=granted
        dataset.drop=[id,propensity]
    """.split()
    result, shown = quick(*words, f"dataset.path={LOANS}")
    (note,) = [note for note in result.notes if "π estimated" in note]
    people = result.evaluation
    assert people.effective_sample_size < people.labelled < people.people == 60
    for told in (
        f"Note: {note}.",
        f"with {people.labelled} labels, worth {people.effective_sample_size:.0f}",
    ):
        assert told in shown
    assert result.spread("latent_label_auc") is not None
    # Nobody knows every label there.
    assert set(result.references.index.levels[0]) == {"accept_all", "reject_all"}
    assert "every training label" not in shown


def trained(*words: str) -> Training:
    """A run of random decisions."""
    training = training_of("model=random", "seeds=3", "schedule.time_steps=40", *words)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "checkpoint.pt", "none", seconds=float("inf"))
        training.run(checkpoint, no_cache(), Display(progress_only=True))
    return training


def first_day(training: Training) -> dict[str, Oracle]:
    return oracles(training.data.train, training.data.validation, training.learner.setting, no_cache())


SHIFT = ["world.drift.course=step", "world.drift.start=20"]


@pytest.mark.parametrize("world", [[], ["splits=3"], [*SHIFT, "world.drift.label.advantaged=-0.6"]])
def test_the_oracles_score_the_evaluation_people_once_and_no_applicant(
    world: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    training = trained("dataset=credit", *world)
    scored, of_fold = [], Oracle._of_fold

    def counted(self: Oracle, e: int, fold: int, x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        scored.append(len(x))
        return of_fold(self, e, fold, x, s)

    monkeypatch.setattr(Oracle, "_of_fold", counted)
    reference_histories(training, no_cache())
    # Of 150 people a few have the features and the group of a training person.
    assert 0 < sum(scored) <= training.evaluation.people.s.numel()


@pytest.mark.parametrize("dataset", ["fico", "synthetic"])
def test_the_oracle_of_the_day_is_better_after_a_shift_than_one_of_the_first_day(dataset: str) -> None:
    training = trained(f"dataset={dataset}", *SHIFT, "world.drift.label.advantaged=-0.6")
    histories, first = reference_histories(training, no_cache()), first_day(training)["oracle"]
    utilities: tuple[list[torch.Tensor], list[torch.Tensor]] = [], []
    for t, (_, people) in enumerate(training.replayed()):
        still = torch.rand_like(people.s) < first.propensity(people.x, people.s, SeedStreams([], "none"))
        for of, accepted in zip(
            utilities, (histories["oracle"].applicants["accepted"][t], still), strict=True
        ):
            of.append((accepted * (people.label - training.evaluation.cost)).sum(-1))
    of_day, of_first_day = map(torch.stack, utilities)
    torch.testing.assert_close(of_day[:19], of_first_day[:19])
    assert (of_day[19:].sum(0) > of_first_day[19:].sum(0) + 10).all()
    measured = histories["oracle"].measures["utility"]
    assert len(measured) == 41
    for steps in (measured[:20], measured[20:]):
        assert (steps == steps[0]).all()
    assert (measured[20] < measured[0]).all()
    assert (histories["oracle_fair"].measures["dpu"] < 0.05).all()


def test_a_cache_that_cannot_be_written_is_not_taken_for_people_without_an_oracle(tmp_path: Path) -> None:
    (tmp_path / "oracles").write_text("in the way of the folder")
    with pytest.raises(FairAllError, match=f"cannot write to {tmp_path / 'oracles'}"):
        reference_histories(trained("dataset=fico"), cache_in(tmp_path))


@pytest.mark.parametrize("change", [-1.0, 1.0])
def test_labels_that_are_certain_have_an_oracle(change: float) -> None:
    training = trained("dataset=fico", *SHIFT, f"world.drift.label.advantaged={change}")
    histories = reference_histories(training, no_cache())
    s = training.history.s[20:]
    accepted = histories["oracle"].applicants["accepted"][20:]
    assert (accepted[s > 0] == (change > 0)).all()
    for name in ("oracle", "oracle_fair"):
        assert histories[name].measures["utility"].isfinite().all()


@pytest.mark.parametrize("rule", ["lottery", "top"])
def test_references_have_the_places_of_the_world(rule: str) -> None:
    training = trained("dataset=synthetic", "world.capacity.number=8", f"world.capacity.rule={rule}")
    histories = reference_histories(training, no_cache())
    for name, recorded in histories.items():
        assert recorded.applicants["accepted"].sum(-1).max() == (0 if name == "reject_all" else 8)
        assert len(recorded.applicants["counterfactually_accepted"]) == 40
    oracle = first_day(training)["oracle"]
    for t, (_, people) in enumerate(training.replayed()):
        score = oracle.log_odds(people.x, people.s)
        wanted = score.where(score > oracle.threshold[0, 0], -torch.inf)
        chosen = histories["oracle"].applicants["accepted"][t]
        # Of people with the same score others may be chosen.
        taken = wanted.where(chosen, -torch.inf).topk(8).values
        torch.testing.assert_close(taken, wanted.topk(8).values, atol=1e-4, rtol=0.0)


def test_a_world_of_all_parts_is_replayed_as_it_was() -> None:
    training = trained("dataset=fico", *ALL_PARTS)
    for t, (world, people) in enumerate(training.replayed()):
        assert world.time_step == t + 1
        assert torch.equal(people.s, training.history.s[t])
        assert torch.equal(people.label, training.history.label[t])
    found = {name: table.iloc[-1] for name, table in tables(training, no_cache()).items()}
    assert found["oracle"]["regret"] == 0.0 < found["accept_all"]["regret"]
    assert found["reject_all"]["utility_per_place"] == 0.0
    # What groups become is of the run alone.
    assert [name for name, last in found.items() if last.notna()["score_gap"]] == [RUN]


def test_measures_of_some_seeds_after_the_others_are_those_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    training = trained("dataset=synthetic", "seeds=5", "schedule.applicants=50")
    together = tables(training, no_cache())[RUN]
    for decisions in (1, 4000):
        monkeypatch.setattr(summary, "BLOCK", decisions)
        pd.testing.assert_frame_equal(tables(training, no_cache())[RUN], together, check_exact=True)
