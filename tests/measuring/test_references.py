"""What every run is measured against: accepting everybody, nobody, or at random."""

import contextlib
import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from fairall.config.compose import compose_config
from fairall.display.format import CAUTION
from fairall.display.progress import Display
from fairall.errors import FairAllError
from fairall.experiment import run
from fairall.measuring.references import RUN, recorded_policies
from fairall.measuring.summary import series_of
from fairall.models.oracle import Oracle, oracles
from fairall.online.training import Training
from fairall.results.result import Result
from fairall.results.terminal import noise
from tests.conftest import LOANS, MEANING, cache_in, no_cache
from tests.measuring.conftest import trained
from tests.worlds.conftest import ALL_PARTS

pytestmark = pytest.mark.usefixtures("undrawn")

QUICK = ["preset=quick", "schedule.phase1_epochs=1", "schedule.warm_up_epochs=2", "tracking.enabled=false"]
FEW_ROWS = "dataset.rows.pool=400", "dataset.rows.test=400"
Runs = Callable[..., tuple[Result, str]]


@pytest.fixture
def quick(tmp_path: Path) -> Runs:
    """Result and terminal output, in one line, of a quick run."""

    def made(*words: str) -> tuple[Result, str]:
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            result = run(compose_config(*QUICK, f"outputs_dir={tmp_path}", *words), display=Display())
        return result, " ".join(shown.getvalue().split())

    return made


@pytest.mark.whole
@pytest.mark.parametrize(
    ("dataset", "names"), [("credit", ["accept_all", "oracle"]), ("synthetic", ["reject_all", "oracle_fair"])]
)
def test_references_are_what_a_run_of_them_gives(dataset: str, names: list[str], quick: Runs) -> None:
    words = f"dataset={dataset}", "exploration.after=2", *FEW_ROWS * (dataset == "synthetic")
    learnt, _ = quick("model=unfairlog", *words)
    for name in names:
        alone, shown = quick(f"model={name}", *words)
        reference = learnt.references.loc[name]
        pd.testing.assert_frame_equal(alone.references.loc[name], reference, check_exact=True)
        own = alone.aggregate.loc[reference.index, "mean"]
        # Of the applicants tied at a threshold of parity others are drawn.
        drawn = own.index.str.startswith("effective") & ("fair" in name)
        for rows, atol in ((~drawn, 1e-7), (drawn, 0.05)):
            both = own[rows], reference["mean"][rows]
            pd.testing.assert_series_equal(*both, atol=atol, check_names=False)
        assert np.isnan(own["effective_cfu"]) == (dataset == "credit")
        # A policy that accepts nobody is not made to explore.
        assert name != "reject_all" or (alone.per_seed["longest_rejection"] == 8).all()
        assert re.search("hparams|accepted nobody for", shown) is None
    of = learnt.references["mean"]
    assert of["oracle", "effective_dpu_pooled"] > of["oracle_fair", "effective_dpu_pooled"]


def test_a_run_shows_its_references_and_the_noise_of_its_people(quick: Runs) -> None:
    result, shown = quick("model=unfairlog")
    oracle = 100 * result.references.loc[("oracle", "mean_utility"), "mean"]
    assert re.search(rf"│ mean_utility │ [−\d. ±]+ │ [\[\]−\d., ]+ │ 18.00 │ .*{oracle:.2f}", shown)
    assert 0.02 < (result.evaluation.utility_standard_error or 0.0) < 0.05
    assert 0.0 < (result.evaluation.dpu_standard_error or 0.0) < 0.2
    assert " ".join(noise(result).split()) in shown
    assert CAUTION in shown.split("┃")[0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        # ½ is above what a thresholded policy asks for only where it accepts everybody: c next to 0.
        ("model.decision=deterministic cost.value=0.01", "collapsed to accepting everybody"),
        ("initial_policy.intercept=-1000", "the initial policy accepted nobody"),
    ],
)
def test_policies_that_are_constant_are_warnings(words: str, told: str, quick: Runs) -> None:
    result, shown = quick("model=unfairlog", *words.split())
    assert told in " ".join(result.warnings)
    assert told in shown


def test_what_was_done_with_unlabelled_people_is_in_the_summary(quick: Runs) -> None:
    words = "dataset.decision=decision dataset.accepted=granted dataset.drop=[id,propensity]".split()
    result, shown = quick("model=fairall_II", "dataset=csv", f"dataset.path={LOANS}", *MEANING, *words)
    (note,) = (note for note in result.notes if "π estimated" in note)
    assert f"Note: {note}." in shown
    people = result.evaluation
    assert people.effective_sample_size < people.labelled < people.people == 60
    assert result.spread("latent_label_auc") is not None
    # Nobody knows every label there.
    assert set(result.references.index.levels[0]) == {"accept_all", "reject_all"}
    assert result.references.index.names == ["policy", "measure"]
    assert "every training label" not in shown


def first_day(training: Training) -> Oracle:
    return oracles(training.data, training.learner.setting, no_cache())["oracle"]


LONG = "seeds=2", "schedule.time_steps=20"
SHIFT = ["world.drift.course=step", "world.drift.start=10"]


def test_the_oracle_of_the_day_is_better_after_a_shift_than_one_of_the_first_day() -> None:
    training = trained(*LONG, "dataset=fico", *SHIFT, "world.drift.label.advantaged=-0.6")
    histories, first = recorded_policies(training, no_cache()), first_day(training)
    still = [first.accepted(first.log_odds(one.x, one.s), one.x, one.s) for _, one in training.replayed()]
    otherwise = histories["oracle"].applicants["accepted"].float() - torch.stack(still)
    won = (otherwise * (training.history.steps["label"] - training.evaluation.cost)).sum(-1)
    assert (won[:9] == 0).all()
    assert (won[9:].sum(0) > 5).all()
    before, after = histories["oracle"].measures["utility"].split([10, 11])
    assert ((before == before[0]) & (after[0] == after[:10]) & (after[0] < before[0])).all()
    assert (histories["oracle_fair"].measures["dpu"] < 0.05).all()


def test_a_cache_that_cannot_be_written_is_not_taken_for_people_without_an_oracle(tmp_path: Path) -> None:
    (tmp_path / "oracles").write_text("in the way of the folder")
    with pytest.raises(FairAllError, match=f"cannot write to {tmp_path / 'oracles'}"):
        recorded_policies(trained(*LONG, "dataset=fico"), cache_in(tmp_path))


@pytest.mark.parametrize("change", [-1.0, 1.0])
def test_labels_that_are_certain_have_an_oracle(change: float) -> None:
    training = trained(*LONG, "dataset=fico", *SHIFT, f"world.drift.label.advantaged={change}")
    histories, advantaged = recorded_policies(training, no_cache()), training.history.steps["s"][10:] > 0
    accepted = histories["oracle"].applicants["accepted"][10:]
    assert (accepted[advantaged] == (change > 0)).all()
    for name in ("oracle", "oracle_fair"):
        assert histories[name].measures["utility"].isfinite().all()


@pytest.mark.parametrize("rule", ["lottery", "top"])
def test_references_have_the_places_of_the_world(rule: str) -> None:
    words = *FEW_ROWS, "world.capacity.number=8", f"world.capacity.rule={rule}"
    training = trained(*LONG, "dataset=synthetic", *words)
    histories = recorded_policies(training, no_cache())
    own = {name: recorded.applicants["accepted"] for name, recorded in histories.items()}
    most = {name: int(accepted.sum(-1).max()) for name, accepted in own.items()}
    assert most == dict.fromkeys(own, 8) | {"reject_all": 0}
    oracle = first_day(training)
    score = torch.stack([oracle.log_odds(one.x, one.s) for _, one in training.replayed()])
    wanted = score.where(score > oracle.threshold[0, 0, 0], -torch.inf)
    best, taken = (of.topk(8).values for of in (wanted, wanted.where(own["oracle"], -torch.inf)))
    torch.testing.assert_close(taken, best, atol=1e-4, rtol=0.0)
    assert all(len(one.applicants["counterfactually_accepted"]) == 20 for one in histories.values())


def test_a_world_of_all_parts_is_replayed_as_it_was() -> None:
    training = trained(*LONG, "dataset=fico", *ALL_PARTS)
    seen = [(world.time_step, people) for world, people in training.replayed()]
    assert [time_step for time_step, _ in seen] == [*range(1, 21)]
    for name in ("s", "label"):
        replayed = torch.stack([getattr(people, name) for _, people in seen])
        assert torch.equal(replayed, training.history.steps[name])
    policies, of = recorded_policies(training, no_cache()), training.evaluation
    found = {name: series_of(one, of.cost, of.measures) for name, one in policies.items()}
    assert (found["oracle"]["regret"][-1] == 0.0).all()
    assert (found["accept_all"]["regret"][-1] > 0.0).all()
    assert (found["reject_all"]["utility_per_place"][-1] == 0.0).all()
    # What groups become is of the run alone.
    assert [name for name, series in found.items() if series["score_gap"][-1].isfinite().all()] == [RUN]
