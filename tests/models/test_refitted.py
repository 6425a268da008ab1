"""What holds for every method whose classifiers are fitted anew, with its own or any of scikit-learn."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from fairall.config.compose import compose_config, stored_config
from fairall.data.people import Decided
from fairall.runtime.randomness import SeedStreams
from fairall.storage.identity import configuration_key
from tests.conftest import as_saved, cache_in, training_of
from tests.models.conftest import built, swayed

STREAMS = SeedStreams([0, 1], "any")
FOREST = {"_target_": "sklearn.ensemble.RandomForestClassifier", "n_estimators": 5, "max_depth": 3}
TREE = "sklearn.tree.DecisionTreeClassifier"
NEIGHBOURS = {"_target_": "sklearn.neighbors.KNeighborsClassifier"}
INFERENCE = "accepted_only reweighting parcelling fuzzy_augmentation heckman basl".split()
METHODS = [
    ("stacked", {}),
    ("estimator", {}),
    *((name, keys) for name in INFERENCE for keys in ({}, {"estimator": FOREST})),
    ("fuzzy_augmentation", {"imputations": 3}),
]
NEW = swayed(50, 99)


def odds_of(learner: Any, *decided: Any) -> torch.Tensor:
    """Log odds of `NEW` after updates."""
    for one in decided:
        learner.update(one)
    found: torch.Tensor = learner.log_odds(NEW.x, NEW.s, STREAMS)
    return found


@pytest.mark.parametrize(("method", "keys"), METHODS)
@pytest.mark.parametrize("label", [0.0, 1.0, None])
def test_labels_that_are_all_the_same_or_none_give_one_probability(
    method: str, keys: dict[str, Any], label: float | None
) -> None:
    learner, people = built(method, [0, 1], **keys), swayed(40, 0)
    known = (people.accepted & (label is not None)).double()
    ones, cost = known * (label or 0.0), learner.setting.cost
    odds = odds_of(learner, replace(people, accepted=known > 0, label=ones.float()))
    expected = ((ones.sum(-1) + 2 * cost) / (known.sum(-1) + 2)).logit()
    torch.testing.assert_close(odds, expected.unsqueeze(-1).expand_as(odds))
    assert (learner.propensity(NEW.x, NEW.s, STREAMS) == float(label != 0.0)).all()


@pytest.mark.parametrize("method", INFERENCE)
def test_nobody_rejected_leaves_nothing_to_infer(method: str) -> None:
    people = swayed(300, 0)
    people = replace(people, accepted=torch.ones_like(people.accepted))
    found = [odds_of(built(name, [0, 1]), people) for name in (method, "accepted_only")]
    assert torch.equal(*found) or method == "heckman"  # which has one more input, that is 0
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("method", ["stacked", "parcelling"])
def test_it_is_fitted_when_the_people_seen_have_grown(method: str) -> None:
    learner = built(method, [0, 1], growth=0.5)
    before, changes = odds_of(learner, swayed(100, 0)), []
    for step in range(1, 9):
        after = odds_of(learner, swayed(25, step))
        changes.append(not torch.equal(before, after))
        assert learner.unchanged != changes[-1]
        before = after
    assert changes == [False, True, False, False, True, False, False, False]


def test_estimates_are_kept_of_the_same_people_by_the_same_classifiers() -> None:
    learner = built("accepted_only", [0, 1])
    first, saved = odds_of(learner, swayed(100, 0)), as_saved(learner.training_state())
    assert odds_of(learner).data_ptr() == first.data_ptr()
    others = [learner.log_odds(x, s, STREAMS) for x, s in ((NEW.x, -NEW.s), (NEW.x + 1, NEW.s))]
    others.append(odds_of(learner, swayed(400, 3)))
    assert not any(torch.equal(first, other) for other in others)
    learner.load_training_state(saved)
    assert torch.equal(odds_of(learner), first)
    for start in range(9):  # and of a few groups of people alone
        learner.log_odds(swayed(5, start).x, swayed(5, start).s, STREAMS)
    assert len(learner.fitted.known) == 4


@pytest.mark.parametrize(
    ("method", "model"),
    [
        ("accepted_only", LogisticRegression(tol=1e-10, max_iter=1000)),
        ("estimator", HistGradientBoostingClassifier(random_state=0)),
    ],
)
def test_without_inference_it_is_the_classifier_of_the_accepted(method: str, model: Any) -> None:
    people, learner = swayed(400, 0), built(method, [0, 1])
    found = odds_of(learner, people).sigmoid()
    for e in range(2):
        columns, asked = (np.column_stack([of.x[e], of.s[e]]).astype(float) for of in (people, NEW))
        known, mean, scale = people.accepted[e].numpy(), columns.mean(0), columns.std(0)
        model.fit((columns[known] - mean) / scale, people.label[e].numpy()[known])
        np.testing.assert_allclose(found[e], model.predict_proba((asked - mean) / scale)[:, 1], atol=1e-4)


def test_a_label_of_weight_two_counts_twice() -> None:
    people = swayed(200, 0)
    twice = people.rows((torch.arange(280) % 200).expand(2, -1))
    once = replace(people, weight=1.0 + (torch.arange(200) < 80).expand(2, -1))
    found = [odds_of(built("accepted_only", [0, 1], linear_c=1e6), given) for given in (once, twice)]
    torch.testing.assert_close(*found, rtol=1e-3, atol=1e-3)


def test_people_of_weight_0_are_left_out() -> None:
    people, weight = swayed(60, 0), (torch.arange(60) < 40).float().expand(2, -1)
    learner = built("accepted_only", [0, 1], estimator=NEIGHBOURS)  # which takes no weights that differ
    odds_of(learner, replace(people, weight=weight))
    n = [one.n_samples_fit_ for one in learner.fitted.read()]
    assert n == people.accepted[:, :40].sum(-1).tolist()


LATENT = "+model@model.latent_inputs=fairall_I_II"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where trainings of Phase I are kept."""
    return tmp_path_factory.mktemp("kept")


def pretrained(kept: Path, method: str) -> tuple[Any, Decided]:
    """A learner of two seeds after Phase I, and people."""
    words = method.split()
    training = training_of(*words, "dataset=credit", "schedule.phase1_epochs=3", "seeds=2")
    training.learner.pretrain(training.data, cache_in(kept), lambda **_: None)
    assert training.learner.pretrain_units(training.data) == 3 * ("fairall" in method)
    return training.learner, training.decided


@pytest.mark.parametrize("method", ["stacked", "accepted_only", f"estimator model.estimator._target_={TREE}"])
def test_the_latent_mean_of_phase1_is_appended_to_what_classifiers_are_fitted_to(
    method: str, kept: Path
) -> None:
    methods = f"model={method} {LATENT}", "model=fairall_I_II ~hparams", f"model={method}"
    (learner, people), (fairall, _), (without, _) = (pretrained(kept, of) for of in methods)
    assert len([*kept.rglob("*.pt")]) == 1, "they share Phase I"
    x, s = people.x, people.s
    known, z = learner.features(x, s).split([x.shape[-1], learner.config.latent_inputs.latent_size], -1)
    assert torch.equal(known, x)
    torch.testing.assert_close(z, fairall.model.vae.encode(x, s, torch.zeros_like(s))[0].detach())
    assert len({*z[0, :, -1].tolist()}) > 50  # it tells people apart
    found = []
    for own, broken in ((without, None), (learner, None), (learner, 0.0), (learner, torch.nan)):
        if broken is None:
            own.update(people)
        else:  # a seed without latent means, or whose Phase I has diverged
            for weight in own.latent.model.vae.encoder.parameters():
                weight.data[1] = broken
            own.fitted.known.clear()
            assert (own.features(x, s)[1, :, x.shape[-1] :] == 0).all()
        found.append(own.log_odds(x, s, STREAMS))
    assert not torch.equal(found[0][0], found[1][0])
    assert not torch.equal(found[1][1], found[2][1])
    assert torch.equal(found[3], found[2])
    learner.update(people)
    assert learner.log_odds(x, s, STREAMS).isfinite().all()


def test_the_latent_of_a_blind_encoder_is_that_of_x_alone(kept: Path) -> None:
    for blind in (True, False):
        learner, people = pretrained(
            kept, f"model=stacked {LATENT} model.latent_inputs.blind_encoder={blind}"
        )
        x, s = people.x, people.s
        assert torch.equal(learner.features(x, s), learner.features(x, -s)) == blind
        z, vae = learner.features(x, s)[..., x.shape[-1] :, None], learner.latent.model.vae
        assert not torch.equal(vae.decode(z, s), vae.decode(z, -s)), "the decoder does"


def test_without_a_latent_configurations_are_as_before() -> None:
    assert not [name for name in built("stacked", [0, 1]).state_dict() if "latent" in name]
    with_latent, without = (stored_config(compose_config("model=stacked", *w)) for w in ([LATENT], []))
    assert "latent_inputs" not in configuration_key(without)
    assert "latent_inputs" in configuration_key(with_latent)
