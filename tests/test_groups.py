"""More than two groups: data, nets, measures, whole runs, saved policies, and what is refused."""

import itertools
import json
import random
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

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
from tests.conftest import no_cache, run_folder, training_of, typed

pytestmark = pytest.mark.usefixtures("undrawn")

FOUR = ("white", "black", "hispanic", "asian")
FICO = ("dataset=fico", f"dataset.groups=[{','.join(FOUR)}]", "tracking.enabled=false")
MEANING = ("dataset.label=repaid", "dataset.positive=yes", "dataset.sensitive=race")


def loans(folder: Path, races: list[str]) -> Path:
    """A file of people of these races, a row each."""
    draw = random.Random(0)
    frame = pd.DataFrame(
        {
            "income": [round(draw.gauss(40, 10), 2) for _ in races],
            "race": races,
            "repaid": [draw.choice(["yes", "no"]) for _ in races],
        }
    )
    path = folder / "loans.csv"
    frame.to_csv(path, index=False)
    return path


def own(folder: Path, races: list[str], *words: str) -> Table:
    return load_dataset("csv", f"dataset.path={loans(folder, races)}", *MEANING, *words).table()


# Data


def test_fico_has_the_shares_and_the_base_rates_of_the_report() -> None:
    data = load_dataset("fico", *FICO[1:2], "dataset.rows.test=200000")
    scores, people = data.scores, data.prepare().test  # type: ignore[attr-defined]
    totals = pd.read_csv(Path(fairall.__file__).parent / "data" / "fico_tables" / "totals.csv")
    reported = totals[["Non- Hispanic white", "Black", "Hispanic", "Asian"]].to_numpy()[0]
    for number in range(4):
        own_people = people.s == number
        assert own_people.double().mean().item() == pytest.approx(reported[number] / reported.sum(), abs=3e-3)
        rate = (scores.share[number] * scores.repays[number]).sum()
        assert people.label[own_people].mean().item() == pytest.approx(rate, abs=0.02)


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
    ("name", "words", "sizes"),
    [
        ("adult", "[White,Black,Asian-Pac-Islander,Amer-Indian-Eskimo,Other]", [38903, 4228, 1303, 435, 353]),
        ("law", "[Black,White,Asian]", [1282, 18285, 845]),
        ("compas", "[Caucasian,African-American,Hispanic,Other]", [2103, 3175, 509, 343]),
    ],
)
def test_each_word_of_a_raw_file_is_a_group(raw_data: Path, name: str, words: str, sizes: list[int]) -> None:
    sensitive = [] if name == "compas" else ["dataset.sensitive=race"]
    table = load_dataset(name, f"dataset.groups={words}", *sensitive).table()
    assert np.bincount(table.s).tolist() == sizes
    assert table.schema.n_groups == len(sizes)
    assert [table.group_name(s) for s in range(len(sizes))] == words.strip("[]").split(",")
    assert "race" not in table.schema.names


@pytest.mark.parametrize(
    ("name", "words", "sizes"),
    [
        (
            "compas",
            "race+sex",
            {"Caucasian+Male": 1621, "Caucasian+Female": 482, "African-American+Female": 549},
        ),
        ("law", "race+sex", {"White+2": 10581, "White+1": 7704, "Black+2": 482, "Black+1": 800}),
        ("law", "sex+race", {"2+White": 10581, "2+Black": 482, "1+White": 7704, "1+Black": 800}),
        (
            "adult",
            "race+sex dataset.groups=[Other+Female,White+Male,Black+Male]",
            {"Other+Female": 126, "White+Male": 27020},
        ),
        ("meps", "race+sex", {"White+1": 3296, "White+2": 3453, "Non-White+1": 5146, "Non-White+2": 5675}),
    ],
)
def test_combinations_of_race_and_sex_are_groups(
    raw_data: Path, name: str, words: str, sizes: dict[str, int]
) -> None:
    dataset = load_dataset(name, *f"dataset.sensitive={words}".split())
    table = dataset.table()
    found = {group: int(rows.sum()) for group, rows in table.groups.items()}
    assert found.items() >= sizes.items()
    assert next(iter(found)) == next(iter(sizes))  # in the place of S = +1
    assert not {"race", "sex"} & {name.lower() for name in table.schema.names}
    data = dataset.prepare()
    assert data.schema.n_groups == len(found)
    assert data.schema.crossed == tuple(tuple(group.split("+")) for group in found)
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


@pytest.mark.parametrize(
    ("races", "words", "told"),
    [
        (["a", "b", "c"] * 100, "dataset.groups=[a]", "two or more different words"),
        (["a", "b", "c"] * 100, "dataset.groups=[a,b,x]", "no such value; it has 3 values (a, b, c)"),
        (["a", "b", "c"] * 100, "dataset.groups=[a,b,c] dataset.advantaged=a", "give the one of two"),
        (["a", "b", "c"] * 100, "dataset.groups=[a,b,A]", "give the one of two"),
        (["a", "b", "c"] * 100, "dataset.advantaged=a", "'race' has 3 values (a, b, c)"),
        (["a", "b"] * 100, "", "2 values (a, b): give the one of two that is S = +1"),
        (["a"] * 100, "", "'race' has 1 value (a)"),
        ([f"r{i}" for i in range(40)] * 10, "", "40 values"),
        (["a", "b"] * 100 + ["c"], "", "row is one of the c group"),
    ],
)
def test_bad_groups_of_a_csv_are_told_in_a_line(
    tmp_path: Path, races: list[str], words: str, told: str
) -> None:
    with pytest.raises(FairAllError) as caught:
        own(tmp_path, races, *words.split())
    (fault,) = str(caught.value).removesuffix(f"\n{PREFIX}").splitlines()
    assert told in fault


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("adult dataset.sensitive=race dataset.groups=[White,Martian]", "Asian-Pac-Islander, Black, Other"),
        ("adult dataset.groups.race.advantaged=[White]", "a list of two or more different words"),
        ("compas dataset.groups=[Caucasian,Martian]", "Hispanic, Native American, Other"),
        ("compas dataset.sensitive=sex", "accept it with dataset.rows=null"),
        ("compas dataset.sensitive=race+sex dataset.groups=[Caucasian,Other]", "Caucasian+Female"),
        ("law dataset.sensitive=race+age", "it must be"),
        ("adult dataset.sensitive=race+sex dataset.groups=[White+Male,Black]", "White+Female"),
        ("meps dataset.sensitive=RACE+SEX", "RACE or race or sex"),
        ("adult dataset.sensitive=race+race", "of different attributes"),
    ],
)
def test_bad_groups_are_told_in_a_line(raw_data: Path, words: str, told: str) -> None:
    with pytest.raises(FairAllError) as caught:
        load_dataset(*words.split()).table()
    assert told in str(caught.value)
    assert "was the file edited" not in str(caught.value)


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
    assert inputs.size_with_s == 4
    assert inputs.with_s(x, s).tolist() == [[[0.5, 0.0, 0.0, 1.0], [0.25, 1.0, 0.0, 0.0]]]
    assert (inputs.columns_with_s(x, s) == inputs.with_s(x, s).mT).all()
    assert group_index(s, 3).tolist() == [[2, 0]]
    two = FeatureInputs(Schema([Feature("score", Kind.REAL)]))
    assert two.size_with_s == 2
    assert two.with_s(x, s)[..., 1].tolist() == s.tolist()


def test_the_number_of_groups_is_part_of_a_schema_with_more_than_two() -> None:
    features = [Feature("score", Kind.REAL)]
    assert repr(Schema(features)) == repr(Schema(features, n_groups=2))
    assert repr(Schema(features)) != repr(Schema(features, n_groups=3))


# Measures


def pairwise(values: list[float]) -> float:
    known = [value for value in values if value == value]
    gaps = [abs(a - b) for a, b in itertools.combinations(known, 2)]
    return max(gaps) if gaps else float("nan")


def test_gaps_are_the_largest_of_all_pairs() -> None:
    generator = np.random.default_rng(0)
    for n_groups in (2, 3, 5):
        for _ in range(20):
            s = generator.integers(0, n_groups, 40)
            s[:n_groups] = range(n_groups)
            s = np.array(sides(n_groups))[s]
            p, label = generator.random((2, 40)), generator.integers(0, 2, 40)
            weight = generator.random(40)
            given = [torch.tensor(of).float() for of in (p, label, s, weight)]
            found = {
                "dpu": metrics.dpu(given[0], given[2]),
                "eo": metrics.equal_opportunity(given[0], given[1], given[2], given[3]),
                "pp": metrics.predictive_parity(given[0], given[1], given[2], given[3]),
            }
            for seed in range(2):
                own_p = p[seed]
                rates: dict[str, list[float]] = {"dpu": [], "eo": [], "pp": []}
                for g in sides(n_groups):
                    own = s == g
                    positive = (weight * label)[own].sum()
                    rates["dpu"].append(own_p[own].mean())
                    rates["eo"].append((weight * label * own_p)[own].sum() / positive if positive else np.nan)
                    rates["pp"].append((weight * own_p * label)[own].sum() / (weight * own_p)[own].sum())
                for name, values in rates.items():
                    assert found[name][seed].item() == pytest.approx(pairwise(values), abs=1e-5)


def test_effective_dpu_of_three_groups_by_hand() -> None:
    accepted = torch.tensor([[[1, 0, 1, 1]], [[1, 1, 0, 0]], [[1, 1, 1, 1]]], dtype=torch.bool)
    s = torch.tensor([[[0.0, 0, 1, 2]], [[0.0, 1, 1, 1]], [[2.0, 2, 2, 2]]])
    # ½, 1, 1; then 1 and ⅓ with nobody of the third; then one group alone, which has no gap.
    assert metrics.effective_dpu(accepted, s)[:, 0].tolist() == pytest.approx([1 / 2, 7 / 12, 7 / 12])
    pooled = metrics.effective_dpu_pooled(accepted, s)[:, 0].tolist()
    assert pooled == pytest.approx([1 / 2, 1 - 2 / 4, 1 - 2 / 4])


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


def test_weights_of_groups_are_learnt(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    "words",
    [
        "model=fairall_I_II initial_policy=lenient",
        "model=fairlab_I_II splits=2",
        "model=greedy world=[capacity,delay]",
    ],
)
def test_what_works_with_any_number_of_groups(words: str, tmp_path: Path) -> None:
    overrides = [
        "preset=quick",
        "schedule.warm_up_epochs=3",
        *FICO,
        f"outputs_dir={tmp_path}",
        *words.split(),
    ]
    result = fairall.run(fairall.compose_config(*overrides))
    assert [*result.groups] == ["all", *FOUR]
    assert result.spread("mean_dpu") is not None
    assert (result.spread("latent_s_mmd") is None) == ("greedy" in words)


# A whole run


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("four")
    words = ["model=greedy", *FICO, "preset=quick", "evaluation.decisions=true", f"outputs_dir={folder}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)  # of a worker of pytest-xdist: tables would be narrowed
        ended = typed(*words, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    (folder / "said").write_text(ended.stdout)
    return folder


@pytest.mark.whole
def test_a_run_tells_each_group(outputs: Path) -> None:
    folder, said = run_folder(outputs), (outputs / "said").read_text()
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
    folder = run_folder(outputs)
    log = pd.read_csv(folder / "decisions.csv")
    assert set(log["race"]) == {*FOUR}
    last = pd.read_csv(folder / "metrics.csv").groupby("seed")["effective_dpu_pooled"].last()
    for seed, own_log in log.groupby("seed"):
        rates = own_log.groupby("race")["decision"].mean()
        assert last[seed] == pytest.approx(rates.max() - rates.min(), abs=1e-5)


def test_a_saved_policy_reads_the_words_of_all_groups(outputs: Path) -> None:
    policy = Policy.load(run_folder(outputs) / "policy")
    assert policy.reader.n_groups == 4
    people = pd.DataFrame({"score": [40.0] * 4, "race": FOUR})
    assert policy.reader.read(people)[1].tolist() == [0.0, 1.0, 2.0, 3.0]
    by_code = people.drop(columns="race").assign(s=range(4))
    assert (policy.propensity(people) == policy.propensity(by_code)).all()
    assert len(policy.reader.example()) == 4
    with pytest.raises(FairAllError, match="white, black, hispanic, asian"):
        policy.propensity(people.assign(race="green"))


@pytest.mark.whole
def test_decide_and_evaluate_tell_each_group(outputs: Path) -> None:
    folder = run_folder(outputs)
    log = folder / "decisions.csv"
    ended = typed("decide", str(folder), str(log), "-o", str(outputs / "decided.csv"), "--json", cwd=outputs)
    assert ended.returncode == 0, ended.stderr
    groups = json.loads(ended.stdout)["groups"]
    assert [*groups] == ["all", *FOUR]
    assert sum(groups[name]["people"] for name in FOUR) == groups["all"]["people"] == len(pd.read_csv(log))
    words = """
        decision=decision label=label positive=1 sensitive=race propensity=propensity drop=[seed,time_step]
    """.split()
    ended = typed("evaluate", str(log), *words, "-o", str(outputs / "evaluation"), cwd=outputs)
    table = pd.read_csv(outputs / "evaluation" / "tables" / "groups.csv")
    people = table[table["measure"] == "people"].set_index("group")["value"].astype(int)
    assert people.to_dict() == {name: groups[name]["people"] for name in FOUR}
