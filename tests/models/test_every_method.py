"""What is true of every method of conf/model: state, replicates, people, flags, and each rule of a run."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from fairall.config.choices import choices, shown
from fairall.config.compose import compose_config, target_class
from fairall.data.people import People
from fairall.data.prepared import PreparedData
from fairall.display.progress import Display
from fairall.errors import FairAllError
from fairall.experiment import job, prepare
from fairall.live.offline import WEIGH_LABELS
from fairall.models.fairness import FairThresholds
from fairall.models.latent_learner import LatentLearner
from fairall.models.learner import TAKE_AMOUNTS, FixedPolicy, Learner
from fairall.models.mixture import Mixture
from fairall.online.training import Training
from fairall.policy import Policy
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Cache, Checkpoint
from tests.conftest import LOANS, as_saved, only_whole
from tests.models.conftest import SMALL, propensities, rates_of, same, someone, stacked, taught

Start = Callable[..., Training]
FILES = choices()["model"]


def class_of(name: str) -> type[Learner]:
    """The class that conf/model/NAME.yaml names, or that the file it builds on names."""
    node = yaml.safe_load(FILES[name].read_text())
    return (
        target_class(node, "model") if "_target_" in node else class_of(node["defaults"][0].partition("@")[0])
    )


CLASSES = {name: class_of(name) for name in FILES}
FIXED = {name for name, of in CLASSES.items() if issubclass(of, FixedPolicy)}
NO_ESTIMATE = {*FIXED, "explore_exploit", "fair_reductions"}  # that thresholds could be chosen for
GROUPS = "dataset.sensitive=purpose dataset.advantaged=null dataset.groups=[car,house,business]"
CENTS = "dataset.gain={intercept:20,income:0.1} dataset.loss={income:0.06}"
LATENT = "+model@model.latent_inputs=fairall_I_II"
CROSSED = """
    dataset.sensitive=purpose+sex dataset.advantaged=null dataset.drop=[id,decision,propensity,purpose,sex]
    dataset.groups=[car+male,car+female,house+male,house+female,business+male]
"""
RUN = """
    dataset=csv dataset.label=repaid dataset.positive=yes dataset.sensitive=sex dataset.advantaged=male
    dataset.drop=[id,decision,propensity,purpose+sex] initial_policy=random seeds=2 evaluation.decisions=true
    schedule.time_steps=3 schedule.applicants=16 schedule.warm_up_applicants=32 schedule.warm_up_epochs=2
    schedule.phase1_epochs=2 evaluation.window=[1,3]
""".split()
SMALLER = SMALL | {
    "adaptation_updates": 4,
    "latent_size": 2,
    "elbo_samples": 3,
    "kl_samples": 4,
    "members": 4,
    "updates": 4,
    "clone_updates": 4,
    "policy_updates": 2,
    "past_policies": 2,
    "alpha": 1 / 3,
    "growth": 0.6,
    "iterations": 3,
    "rounds": 3,
    "solve_every": 2,
}
VARIANTS = [
    *(f"model=fairall_I_II model.policy={policy}" for policy in ("z_label", "z_clf", "clf", "dec")),
    "model=fairall_II protocol=published_code model.memory=all",
    "model=fairall_I_II model.blind_encoder=true",
    "model=fairlab_I_II protocol=published_code",
    "model=fairlog protocol=published_code",
    "model=fairlog model.decision=deterministic model.memory=all",
    f"model=greedy {CENTS}",
    *(f"model={name} {GROUPS}" for name in ("fairall_I_II", "fairlog", "parity_ensemble")),
    f"model=fairlab_I_II {CROSSED}",
    "model=greedy fairness.rule=demographic_parity fairness.slack=0 fairness.blind=true",
    "model=parity_stacked world.capacity.rule=top world.capacity.share=0.3",
    "model=dcem model.protected_as_feature=true",
    "model=multiple_imputation model.odds_ratio=2",
    *(f"model=consequential model.policy={policy}" for policy in ("semi_logistic", "threshold")),
    "model=consequential model.data=recent",
    "model=fuzzy_augmentation model.imputations=3",
    "model=basl model.estimator={_target_:sklearn.ensemble.RandomForestClassifier,n_estimators:5}",
    *(f"model={name} {LATENT}" for name in ("parity_stacked", "heckman", f"accepted_only {GROUPS}")),
]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """That of all runs, which share trainings of Phase I and oracles."""
    return Cache(tmp_path_factory.mktemp("cache"), checkpoint_seconds=float("inf"))


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory, few_trees: None) -> Start:
    """Makes the run of some words, with small nets and trees, on the labelled of `LOANS`."""
    path = tmp_path_factory.mktemp("labelled") / "loans.csv"
    people = pd.read_csv(LOANS).dropna(subset="repaid")
    people["purpose+sex"] = people["purpose"] + "+" + people["sex"]
    people.to_csv(path, index=False)
    known: dict[Any, PreparedData] = {}

    def started(*words: str) -> Training:
        few = ("+model.estimator.max_iter=5",) if "model=estimator" in words else ()
        composed = compose_config(*RUN, f"dataset.path={path}", *words, *few)
        composed.model.update({key: value for key, value in SMALLER.items() if key in composed.model})
        key = str(composed.dataset), composed.protocol.scaler
        return job(composed, lambda *of: known[key] if key in known else known.setdefault(key, prepare(*of)))

    return started


@pytest.fixture
def finish(start: Start, cache: Cache, tmp_path: Path) -> Start:
    """Runs the run of some words."""

    def finished(*words: str) -> Training:
        training = start(*words)
        state = Checkpoint(tmp_path / str(id(training)), "state", seconds=float("inf"))
        training.run(state, cache, Display(progress_only=True))
        return training

    return finished


@pytest.fixture(params=[*(f"model={name}" for name in FILES if name != "opt_fair"), *only_whole(VARIANTS)])
def make(request: pytest.FixtureRequest, start: Start, cache: Cache) -> Start:
    """The run of a method after Phase I, for which words say the seeds."""

    def made(*words: str) -> Training:
        training = start(*request.param.split(), *words)
        training.learner.pretrain(training.data, cache, lambda **_: None)
        return training

    return made


def crowd_of(training: Training) -> People:
    return training.data.train.rows(torch.arange(60))


def test_training_continues_from_a_checkpoint_to_the_last_bit(make: Start) -> None:
    trainings = [make(), make()]
    (first, second), crowd = (training.learner for training in trainings), crowd_of(trainings[0])
    given = *stacked(crowd), SeedStreams([0, 1], "scores")
    untaught = first.score(*given)
    saved = as_saved(taught(first, crowd, range(3)).training_state())
    assert torch.equal(untaught, first.score(*given)) != first.learns
    second.load_training_state(saved)
    assert same(second.training_state(), saved)
    for learner in (first, second):
        taught(learner, crowd, range(3, 6))
    assert same(first.training_state(), second.training_state())
    assert torch.equal(propensities(first, crowd), propensities(second, crowd))


def test_a_seed_learns_alone_what_it_learns_among_others_who_accept_nobody_or_one_group(make: Start) -> None:
    trainings = [make(*words.split()) for words in ("seeds=3", "seed=2 seeds=1")]
    (learner, other), crowd = (training.learner for training in trainings), crowd_of(trainings[0])
    for step in range(4):
        decided, alone = someone(crowd, step, [0, 1, 2]), someone(crowd, step, [2])
        kept = torch.stack([decided.s[0] > 9, decided.s[1] > 0, decided.s[2] > -9])
        names = ("propensity", "accepted", "label")
        decided = replace(decided, **{name: getattr(decided, name) * kept for name in names})
        for own, batch in ((learner, decided), (other, alone)):
            if step == 0:
                own.warm_up_epoch(batch, 0)
            else:
                own.update(batch)
    for one, among in zip(other.parameters(), learner.parameters(), strict=True):
        assert among.isfinite().all()
        torch.testing.assert_close(one, among[-len(one) :], atol=1e-4, rtol=1e-3)  # with replicates of a seed
    found = propensities(learner, crowd)
    assert found.isfinite().all()
    torch.testing.assert_close(found[2], propensities(other, crowd)[0], atol=1e-4, rtol=1e-3)


def test_a_saved_policy_decides_on_each_person_alone_and_draws_as_its_rule_says(
    make: Start, tmp_path: Path
) -> None:
    training = make()
    crowd = crowd_of(training)
    learner = taught(training.learner, crowd, range(3))
    Policy.of(learner, training.data).save(tmp_path, training.config.stored())
    before, policy = as_saved(learner.training_state()), Policy.load(tmp_path)
    everybody = policy.encoded_propensity(crowd.x, crowd.s)
    if learner.learns:  # an oracle also knows the people whose labels it has seen
        assert (everybody == Policy.of(learner, training.data).encoded_propensity(crowd.x, crowd.s)).all()
    few = [5, 2, 31]
    np.testing.assert_allclose(
        policy.encoded_propensity(crowd.x[few], crowd.s[few]), everybody[:, few], rtol=1e-5
    )
    assert learner.rule.drawn or {*everybody.flat} <= {0.0, 1.0}
    given = stacked(crowd)
    methods = learner.score, learner.propensity, learner.log_odds, learner.margin
    values = [of(*given, SeedStreams([0, 1], "any")) for of in methods]
    assert all(value.shape == (2, len(crowd)) and value.isfinite().all() for value in values)
    assert all(0 <= value.min() <= value.max() <= 1 for value in values[:2])
    uniform = SeedStreams([0, 1], "u").uniform(len(crowd))
    decided, again = (learner.explore(*given, values[1], uniform) for _ in range(2))
    assert torch.equal(decided, again)
    assert same(learner.training_state(), before), "to score or explore leaves the learner as it is"
    assert ((decided >= 0) & (decided <= 1)).all()
    # People who come back are decided on by their own labels.
    if not isinstance(getattr(learner, "learner", learner), Mixture):
        assert (decided >= values[1]).all()
        explores = type(learner).explore is not Learner.explore and not isinstance(learner, FairThresholds)
        assert (decided > values[1]).any() == explores


# Flags


def test_methods_that_messages_name_are_the_ones() -> None:
    def named(words: str) -> set[str]:
        return {*re.findall(r"\w+", words)} - {"or"}

    assert all(CLASSES[name].takes_amounts for name in named(TAKE_AMOUNTS))
    assert all(CLASSES[name].weighs_labels for name in named(WEIGH_LABELS))


@pytest.mark.parametrize("name", [name for name, of in CLASSES.items() if of.weighs_labels])
def test_a_label_of_weight_0_teaches_nothing(name: str, start: Start) -> None:
    decided, states = someone(start().data.train, 0, [0, 1]), []
    weight = torch.arange(16.0).remainder(2).expand(2, -1)
    flipped = torch.where((weight == 0) & decided.accepted, 1.0 - decided.label, decided.label)
    for label, own in (decided.label, weight), (flipped, weight), (flipped, torch.ones(2, 16)):
        learner = start(f"model={name}").learner
        learner.warm_up_epoch(replace(decided, label=label, weight=own), 0)
        states.append(learner.state_dict())
    assert [same(states[0], other) for other in states[1:]] == [True, False]


@pytest.mark.parametrize("name", [name for name, of in CLASSES.items() if of.takes_amounts])
def test_equal_amounts_are_one_cost_in_any_unit_of_money(name: str, finish: Start) -> None:
    amounts = "dataset.gain={intercept:70} dataset.loss={intercept:30}"
    one, other = (finish(f"model={name}", *of.split()).history for of in ("cost.value=0.3", amounts))
    assert torch.equal(one.steps["accepted"], other.steps["accepted"])
    for measure, values in one.measured.read().items():
        factor = 100 if measure.startswith("utility") else 1
        torch.testing.assert_close(
            other.measured[measure], factor * values, rtol=1e-3, atol=1e-3, equal_nan=True
        )


@pytest.mark.parametrize(
    "words",
    [
        *(
            f"model={name} model.protected_as_feature={sees}"
            for name in ("dcem", "consequential")
            for sees in (False, True)
        ),
        *(
            f"model={name} model.blind_encoder={blind}"
            for name in ("fairall_I_II", "fairlab_I_II", "fairall_II model.policy=clf")
            for blind in ("true", "false")
        ),
    ],
)
def test_who_does_not_see_s_decides_without_it(words: str, finish: Start) -> None:
    assert reads_s(finish(*words.split())) == ("feature=True" in words or "encoder=false" in words)


def reads_s(training: Training) -> bool:
    """Whether scores and estimates of a run's learner depend on s."""
    learner, (x, s) = training.learner, stacked(training.data.test)
    same = {
        torch.equal(*(of(x, group, SeedStreams([0, 1], "any")) for group in (s, -s)))
        for of in (learner.score, learner.log_odds, learner.margin)
    }
    assert len(same) == 1
    return same == {False}


# Every rule of a run

FEW = "world.capacity.share=0.3 world.capacity.rule"
PARITY, EQUAL = (
    f"fairness.slack=0 fairness.rule={rule}" for rule in ("demographic_parity", "equal_opportunity")
)
EXPLORE = "exploration.propensity=0.2 exploration.rule"
RULES = [
    f"{FEW}=lottery {EXPLORE}=epsilon",
    f"{FEW}=top {EXPLORE}=bounded",
    f"{PARITY} {EXPLORE}=bounded",
    f"{PARITY} {FEW}=lottery exploration.rule=none",
    f"{EQUAL} {FEW}=top exploration.rule=stuck exploration.after=1",
    f"{CENTS} {FEW}=top {EXPLORE}=epsilon",
    f"{CENTS} {EQUAL} exploration.rule=none",
    f"{CENTS} {EQUAL} {FEW}=lottery",
    f"{CENTS} {EXPLORE}=bounded",
    f"{PARITY} fairness.blind=true {EXPLORE}=bounded",
    f"{EQUAL} fairness.blind=true {CENTS}",
    f"{EQUAL} fairness.blind=true {GROUPS}",
    f"{GROUPS} {PARITY} {EXPLORE}=bounded",
]
QUICK = 3  # of them are tried by `make test`
# Rules that methods do not run under: what is in the words, of which methods, and what they are told.
WHY_NOT = [
    ("", {"opt_fair"}, r"model=opt_fair reads K, and the data set has "),
    (
        "fairness",
        NO_ESTIMATE,
        r"fairness=\w+: model=NAME has no estimate of p\(label = 1\)",
    ),
    (
        "groups",
        {"consequential", "explore_exploit", "fair_reductions", "opt_unfair", "sellf_one_step"},
        r"is for two groups, and the data have 3: .*choose two groups with dataset.groups=\[A,B\]",
    ),
    (
        "gain",
        {name for name, of in CLASSES.items() if not of.takes_amounts},
        "model=NAME has one cost for everybody, .*: choose accept_all, oracle, .* or dataset.decide_by=cost",
    ),
    ("gain.*bounded", {*FILES}, "exploration=bounded is not possible: it must be another rule with dataset"),
    (
        "(?=.*gain)(?=.*capacity).*fairness",
        {*FILES},
        r"fairness=\w+ is not possible: it must be none with few places and dataset.gain",
    ),
]


@pytest.mark.parametrize("rule", [*RULES[:QUICK], *only_whole(RULES[QUICK:])])
@pytest.mark.parametrize("name", FILES)
def test_every_method_runs_under_every_rule_or_says_in_a_line_why_not(
    name: str, rule: str, finish: Start
) -> None:
    asked = f"{rule} fairness" if name.startswith("parity_") else rule
    words = f"model={name}", *rule.split()
    for part, names, why in WHY_NOT:
        if name in names and re.search(part, asked):
            with pytest.raises(FairAllError, match=why.replace("NAME", name)) as told:
                finish(*words)
            assert "\n" not in str(told.value)
            return
    training: Any = finish(*words)
    history = training.history
    assert history.steps["accepted"].shape == (3, 2, 16)
    assert all(
        values.isfinite().all() for values in (history.steps["propensity"], *training.learner.parameters())
    )
    assert (history.steps["propensity"][history.steps["accepted"]] > 0).all()
    if "capacity" in rule:
        assert history.steps["accepted"].sum(-1).max() <= 4
    elif "epsilon" in rule and name not in FIXED:
        assert history.steps["propensity"].min() >= 0.2
    assert torch.equal(*(history.measured["utility"].isfinite(), torch.ones(4, 2) > 0))
    learner = training.learner
    if "blind" in rule and GROUPS not in rule:
        assert not reads_s(training)
    elif PARITY in rule and "capacity" not in rule and not isinstance(learner.learner, Mixture):
        seen = learner.seen.rows()
        for pi, s in zip(learner.propensity(seen.x, seen.s, SeedStreams([0, 1], "any")), seen.s, strict=True):
            gap = np.ptp(rates_of(np.ones(len(s)), s.numpy()) @ pi.numpy())
            assert gap < (0.15 if isinstance(learner.learner, LatentLearner) else 1e-6)  # which draws


# The code


CODE = {path: path.read_text() for path in (Path(__file__).parents[2] / "fairall").rglob("*.py")}


@pytest.mark.parametrize("name", [name for name, of in CLASSES.items() if ".rivals." in of.__module__])
def test_no_code_knows_of_a_method(name: str) -> None:
    of = CLASSES[name].__module__.rpartition(".")[-1]
    others = [text for path, text in CODE.items() if path.stem != of]
    assert not [
        text for text in others if re.search(rf"^\s*from \S*rivals(\.| import .*\b){of}\b", text, re.M)
    ]
    if name not in ("estimator", "greedy", "parity_stacked"):  # of examples, and a default
        assert not [text for text in CODE.values() if f'"{name}"' in text]
        assert {"label", "page", "colour", "mark"} == shown(name).keys()
