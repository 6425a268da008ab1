"""More than two groups: data, nets, measures, whole runs, saved policies, and what is refused."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

import fairall
from fairall import metrics
from fairall.data.features import Feature, FeatureInputs, Kind, Schema
from fairall.data.load import load_dataset
from fairall.data.own_table import PREFIX
from fairall.data.people import Decided, group_index
from fairall.data.table import Table
from fairall.errors import FairAllError
from fairall.models.oracle import oracles
from fairall.models.rivals.greedy import Greedy
from fairall.policy import Policy, schema_of
from fairall.storage.stored import of_plain
from fairall.tables.groups import Sensitive, sides
from fairall.tables.people import PeopleReader
from tests.conftest import no_cache, run_folder, succeeded, training_of

pytestmark = pytest.mark.usefixtures("undrawn")

FOUR = ("white", "black", "hispanic", "asian")
FICO = ("dataset=fico", f"dataset.groups=[{','.join(FOUR)}]", "tracking.enabled=false")
MEANING = ("dataset.label=repaid", "dataset.positive=yes", "dataset.sensitive=race")
CASES = yaml.safe_load((Path(__file__).parent / "data" / "groups.yaml").read_text())


def own(folder: Path, races: list[str], *words: str) -> Table:
    """The table of a file of people of these races, a row each."""
    draw, n = np.random.default_rng(0), len(races)
    frame = {
        "income": draw.normal(40, 10, n).round(2),
        "race": races,
        "repaid": draw.choice(["yes", "no"], n),
    }
    pd.DataFrame(frame).to_csv(folder / "loans.csv", index=False)
    return load_dataset("csv", f"dataset.path={folder / 'loans.csv'}", *MEANING, *words).table()


# Data


def test_fico_has_the_shares_and_the_base_rates_of_the_report() -> None:
    data = load_dataset("fico", *FICO[1:2], "dataset.rows.test=200000")
    scores, people = data.scores, data.prepare().test  # type: ignore[attr-defined]
    totals = pd.read_csv(Path(fairall.__file__).parent / "data" / "fico_tables" / "totals.csv")
    reported = totals[["Non- Hispanic white", "Black", "Hispanic", "Asian"]].to_numpy()[0]
    label = pd.Series(people.label.numpy()).groupby(people.s.numpy())
    assert [*label.size() / 200_000] == pytest.approx(reported / reported.sum(), abs=3e-3)
    assert [*label.mean()] == pytest.approx((scores.share * scores.repays).sum(1), abs=0.02)


def test_two_words_are_the_two_groups_of_before() -> None:
    for words, before in (
        (["dataset.groups=[white,black]"], []),
        (["dataset.groups=[asian,hispanic]"], ["dataset.advantaged=asian", "dataset.disadvantaged=hispanic"]),
    ):
        named, usual = (load_dataset("fico", *given).prepare() for given in (words, before))
        assert named.schema.n_groups == 2
        assert named.fingerprint() == usual.fingerprint()
        assert set(named.test.s.tolist()) == {-1.0, 1.0}


@pytest.mark.parametrize(
    ("how", "words", "sizes"),
    [(how, *one) for how in ("each", "crossed") for row in CASES[how] for one in row.items()],
)
def test_words_of_raw_files_or_pairs_of_them_are_groups(
    raw_data: Path, how: str, words: str, sizes: dict[str, int]
) -> None:
    given = [f"dataset.groups=[{','.join(sizes)}]"] if how == "each" else []
    dataset = load_dataset(*words.split(), *given)
    table = dataset.table()
    found = {group: int(rows.sum()) for group, rows in table.groups.items()}
    assert found.items() >= sizes.items()
    assert next(iter(found)) == next(iter(sizes))
    assert not {"race", "sex"} & {name.lower() for name in table.schema.names} or how == "each"
    assert [table.group_name(s) for s in range(len(found))] == [*found]
    data = dataset.prepare()
    assert data.schema.n_groups == len(found)
    assert data.schema.crossed == (
        tuple(tuple(group.split("+")) for group in found) if how == "crossed" else ()
    )
    saved = of_plain(PeopleReader, json.loads(json.dumps(asdict(data.reader))))
    assert schema_of(saved).crossed == data.schema.crossed


def test_groups_of_a_csv(tmp_path: Path) -> None:
    races = ["b", "a", "c", "d"] * 100
    every = own(tmp_path, races)
    assert every.sensitive is not None
    assert every.sensitive.meaning == {"a": 0.0, "b": 1.0, "c": 2.0, "d": 3.0}
    assert (every.s == np.array([1, 0, 2, 3] * 100)).all()
    some = own(tmp_path, races, "dataset.groups=[c,a,b]")
    assert len(some) == 300
    assert (some.s == np.array([2, 1, 0] * 100)).all()
    assert any("100 rows of other values of column 'race' left out" in note for note in some.notes)
    two = own(tmp_path, races, "dataset.groups=[c,a]")
    assert (two.s == np.array([-1, 1] * 100)).all()
    assert two.schema.n_groups == 2
    assert two.group_name(1) == "S = +1 (c)"


@pytest.mark.parametrize(("races", "words", "told"), CASES["mistakes"])
def test_bad_groups_of_a_csv_are_told_in_a_line(tmp_path: Path, races: str, words: str, told: str) -> None:
    with pytest.raises(FairAllError) as caught:
        own(tmp_path, [*races] * 100, *words.split())
    (fault,) = str(caught.value).removesuffix(f"\n{PREFIX}").splitlines()
    assert told in fault


def test_small_groups_are_warned_of_and_absent_ones_refused(raw_data: Path) -> None:
    few = load_dataset("compas", "dataset.groups=[Caucasian,African-American,'Native American']").prepare()
    told = [warning for warning in few.warnings if "Native American" in warning]
    assert len(told) == 2
    assert all("too few to measure" in warning for warning in told)
    nobody = load_dataset("fico", *FICO[1:2], "dataset.rows.test=10")
    with pytest.raises(FairAllError, match=r"group \w+: nobody among the test people"):
        nobody.prepare()


# Nets


def test_nets_see_an_indicator_per_group() -> None:
    schema = Schema([Feature("score", Kind.REAL)], n_groups=3)
    x, s = torch.tensor([[[0.5], [0.25]]]), torch.tensor([[2.0, 0.0]])
    inputs = FeatureInputs(schema.measured(np.ones((2, 1))).seen_as(schema.inputs))
    assert inputs.with_s(x, s).tolist() == [[[0.5, 0.0, 0.0, 1.0], [0.25, 1.0, 0.0, 0.0]]]
    assert (inputs.columns_with_s(x, s) == inputs.with_s(x, s).mT).all()
    assert group_index(s, 3).tolist() == [[2, 0]]
    two = FeatureInputs(Schema([Feature("score", Kind.REAL)]))
    assert two.with_s(x, s)[..., 1:].tolist() == s[..., None].tolist()


def test_the_number_of_groups_is_part_of_a_schema_with_more_than_two() -> None:
    features = [Feature("score", Kind.REAL)]
    assert repr(Schema(features)) == repr(Schema(features, n_groups=2))
    assert repr(Schema(features)) != repr(Schema(features, n_groups=3))


# Measures


def test_the_standard_error_is_that_of_the_two_extreme_groups() -> None:
    generator = torch.Generator().manual_seed(0)
    s = torch.arange(400) % 4 // 1.0
    chance = torch.tensor([0.2, 0.5, 0.6, 0.9])[s.long()]
    drawn = (torch.rand(4000, 400, generator=generator) < chance).float()
    simulated = metrics.dpu(drawn, s).std().item()
    assert metrics.dpu_standard_error(drawn[:200], s).mean().item() == pytest.approx(simulated, rel=0.05)
    # Groups without any difference: of two of them.
    same = torch.ones(1, 400)
    assert metrics.dpu_standard_error(same, s).item() == 0.0


def test_groups_are_named_by_their_words_or_by_number() -> None:
    def keys(*words: str) -> list[str]:
        first, second, *others = ((word,) for word in words)
        return [*Sensitive("race", first, second, tuple(others)).keys]

    assert keys("Amer-Indian", "White", "b") == ["amer_indian", "white", "b"]
    assert keys("a b", "a-b", "c") == keys("all", "b", "c") == keys("a", "!", "c")
    assert keys("all", "b", "c") == ["group_0", "group_1", "group_2"]
    assert keys("a", "b") == []
    assert sides(3) == (0.0, 1.0, 2.0)


# Methods


def test_the_oracle_with_parity_accepts_four_groups_alike() -> None:
    training = training_of("model=oracle_fair", *FICO)
    people = training.data.train
    policy = oracles(training.data, training.learner.setting, no_cache())["oracle_fair"]
    assert policy.threshold.shape == (1, 1, 4)
    accepted = policy.accepted(policy.log_odds(people.x, people.s), people.x, people.s)
    assert metrics.dpu(accepted, people.s).item() < 1e-3


def test_weights_of_groups_are_learnt() -> None:
    """Labels that depend on the group alone are told apart, which a single column of s could not do."""
    training = training_of("model=greedy", *FICO, "schedule.applicants=200")
    learner = training.learner
    assert isinstance(learner, Greedy)
    generator = torch.Generator().manual_seed(0)
    s = torch.randint(4, (2, 400), generator=generator).float()
    label = (s % 2 == 0).float()
    sure = torch.ones_like(s)
    for epoch in range(6):
        learner.warm_up_epoch(Decided(torch.zeros(2, 400, 1), s, sure, sure.bool(), label), epoch)
    assert ((learner.propensity(torch.zeros(2, 400, 1), s, learner.streams) > 0) == (label > 0)).all()


# A whole run


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("four")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)  # of a worker of pytest-xdist: tables would be narrowed
        words = ["model=greedy", *FICO, "preset=quick", "evaluation.decisions=true"]
        (folder / "said").write_text(succeeded(*words, cwd=folder).stdout)
    return folder


@pytest.mark.whole
def test_a_run_tells_each_group(outputs: Path) -> None:
    folder, said = run_folder(outputs / "outputs"), (outputs / "said").read_text()
    plain = json.loads((folder / "summary.json").read_text())
    table = pd.read_csv(folder / "metrics.csv")
    assert "acceptance_rate_advantaged" not in table
    assert [*plain["groups"]] == ["column", "all", *FOUR]
    card = (folder / "model_card.md").read_text()
    assert "4 groups, from the column `race`" in card
    assert "S = +1" not in card
    for name in FOUR:
        group = plain["groups"][name]
        assert group["values"] == [name]
        assert 0 < group["base_rate"] < 1
        assert table[f"acceptance_rate_{name}"].between(0, 1).any()
        assert f"│ {name} " in said
        assert f"| {name} |" in card
    sizes = [plain["groups"][name]["people"]["test"] for name in FOUR]
    assert sum(sizes) == plain["groups"]["all"]["people"]["test"] == 5000


def test_the_log_has_words_and_its_largest_gap_is_the_effective_one(outputs: Path) -> None:
    folder = run_folder(outputs / "outputs")
    log = pd.read_csv(folder / "decisions.csv")
    assert set(log["race"]) == {*FOUR}
    last = pd.read_csv(folder / "metrics.csv").groupby("seed")["effective_dpu_pooled"].last()
    for seed, own_log in log.groupby("seed"):
        rates = own_log.groupby("race")["decision"].mean()
        assert last[seed] == pytest.approx(rates.max() - rates.min(), abs=1e-5)


def test_a_saved_policy_reads_the_words_of_all_groups(outputs: Path) -> None:
    policy = Policy.load(run_folder(outputs / "outputs") / "policy")
    assert policy.reader.n_groups == 4
    people = pd.DataFrame({"score": [40.0] * 4, "race": FOUR})
    assert policy.reader.read(people)[1].tolist() == [0.0, 1.0, 2.0, 3.0]
    by_code = people.drop(columns="race").assign(s=range(4))
    assert (policy.propensity(people) == policy.propensity(by_code)).all()
    assert len(policy.reader.example()) == 4
    with pytest.raises(FairAllError, match="white, black, hispanic, asian"):
        policy.propensity(people.assign(race="green"))


def test_decide_tells_each_group(outputs: Path) -> None:
    folder = run_folder(outputs / "outputs")
    log = folder / "decisions.csv"
    said = succeeded("decide", str(folder), str(log), "-o", "decided.csv", "--json", cwd=outputs).stdout
    counts = {name: group["people"] for name, group in json.loads(said)["groups"].items()}
    people = pd.read_csv(log)["race"].value_counts()
    assert counts == {"all": people.sum(), **people[[*FOUR]]}
