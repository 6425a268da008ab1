"""What a saved policy says of raw people, and what it refuses."""

import json
import random
import re
import shutil
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.torch
import torch
from omegaconf import OmegaConf
from torch import Tensor

import fairall
from fairall.config.compose import checked, compose_config, typed_config
from fairall.config.schema import Config
from fairall.data.dataset import dataset
from fairall.data.prepared import PreparedData
from fairall.decide.load import load_policy
from fairall.errors import FairAllError
from fairall.models.fairall import FairAll
from fairall.models.learner import Setting
from fairall.nn.stacked import in_chunks
from fairall.policy import SUMS, Policy
from fairall.runtime.randomness import POINTS, FixedSamples, SeedStreams, normal_points
from fairall.storage.files import write_sums

TOWNS = ["Bath", "Hull", "York"]
WORDS = """
    dataset=csv dataset.label=repaid dataset.positive=yes dataset.sensitive=sex seeds=2
    dataset.advantaged=male model.latent_size=4 protocol.vae_start=random
""".split()


def crowd(n: int = 200) -> pd.DataFrame:
    """People as text in a file; there are no towns in an empty cell, and most live in Hull."""
    draw = random.Random(5)
    return pd.DataFrame(
        {
            "income": [round(draw.uniform(10.5, 90.5), 2) for _ in range(n)],
            "children": [draw.randrange(5) for _ in range(n)],
            "owner": [draw.choice([True, False]) for _ in range(n)],
            "town": draw.choices(TOWNS, [1, 3, 1], k=n),
            "rooms": draw.choices([1, 2, 3], k=n),
            "sex": draw.choices(["male", "female"], k=n),
            "repaid": draw.choices(["yes", "no"], k=n),
        }
    )


def sharpened(learner: FairAll, gain: float) -> FairAll:
    """The same with a steeper policy."""
    with torch.no_grad():
        for layer in learner.policy_net.layers:  # type: ignore[union-attr]
            layer.weight.mul_(gain)
    return learner


def built(*words: str, gain: float = 1.5, policy: str = "z_dec") -> tuple[Policy, Config]:
    """A policy of untrained nets, and the configuration to save it with."""
    config = checked(compose_config(*words, f"model.policy={policy}"))
    data = dataset(config.dataset).prepare()
    learner = FairAll(config.model, Setting.of(data.schema, config))
    if policy.startswith("z"):
        sharpened(learner, gain)
    return Policy.of(learner, data), config


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words of a data set of one's own."""
    path = tmp_path_factory.mktemp("loans") / "loans.csv"
    crowd().to_csv(path, index=False)
    return [*WORDS, f"dataset.path={path}", "dataset.kinds={rooms: categorical}"]


@pytest.fixture(scope="module")
def saved(loans: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "policy"
    policy, config = built(*loans)
    policy.save(folder, config)
    return folder


@pytest.fixture(scope="module")
def policy(saved: Path) -> Policy:
    return Policy.load(saved)


@pytest.fixture
def people() -> pd.DataFrame:
    return crowd(12).drop(columns="repaid")


def told(policy: Policy, people: pd.DataFrame, **options: bool) -> str:
    """The one warning of a decision."""
    with pytest.warns(UserWarning, match="row") as caught:
        policy.propensity(people, **options)
    (warning,) = caught
    assert warning.filename == __file__
    return str(warning.message)


def refusal(policy: Policy, people: pd.DataFrame, **options: bool) -> str:
    with pytest.raises(FairAllError) as caught:
        policy.propensity(people, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# A function of the person


def test_a_saved_policy_keeps_its_points(saved: Path, loans: list[str], people: pd.DataFrame) -> None:
    policy = Policy.load(str(saved))
    assert policy.points.shape == (2, 4, POINTS)
    assert not torch.equal(*policy.points), "errors of seeds are independent"
    np.testing.assert_array_equal(built(*loans)[0].propensity(people), policy.propensity(people))
    other = Policy(policy.learner, policy.reader, -policy.points)
    assert (other.propensity(people) != policy.propensity(people)).any(), "the points are those of the folder"


@pytest.mark.whole
@pytest.mark.parametrize("size", [2, 12, 20])
@pytest.mark.parametrize("gain", [1.0, 2.0])
def test_points_are_as_good_as_very_many_draws(size: int, gain: float, credit: PreparedData) -> None:
    config = typed_config("seeds=2", f"model.latent_size={size}", "protocol.vae_start=random")
    given = Setting.of(credit.schema, config)
    many = sharpened(FairAll(replace(config.model, propensity_samples=2**15), given), gain)
    x, s = credit.test.x[:6].expand(2, -1, -1), credit.test.s[:6].expand(2, -1)
    with torch.no_grad():  # so that probabilities lie on both sides of ½, where errors are largest
        assert many.policy_net is not None
        logit = many.policy_net(many.model.latent_mean(x, s))
        many.policy_net.last.bias.sub_(logit.median(1, keepdim=True).values)

    def by(streams: SeedStreams) -> Tensor:
        return in_chunks(lambda x, s: many.propensity(x, s, streams), x, s, rows=1)

    def error(n: int) -> float:
        points = torch.stack([normal_points(size, n, seed) for seed in (0, 1)])
        return (by(FixedSamples([0, 1], points)) - truth).square().mean().sqrt().item()

    truth = by(SeedStreams([0, 1], "truth"))
    assert error(POINTS) <= (0.01 if gain == 1.0 else 0.02)
    assert error(16) > 2 * error(POINTS), "the number of points matters here"


def test_points_are_finite_standard_normal_and_always_the_same() -> None:
    points = normal_points(20, POINTS, 0)
    assert points.isfinite().all()
    torch.testing.assert_close(points.mean(1), torch.zeros(20), atol=0.03, rtol=0)
    torch.testing.assert_close(points.std(1), torch.ones(20), atol=0.05, rtol=0)
    assert torch.equal(points, normal_points(20, POINTS, 0))


class Averaging(FairAll):
    """A method that averages over a normal variable of its own."""

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        noise = streams.normal_samples(x.shape[1], 3, 8)
        return torch.sigmoid(x[..., :1] + 5 * noise.sum(-2)).mean(-1)


def test_a_method_of_ones_own(loans: list[str], people: pd.DataFrame) -> None:
    config = typed_config(*loans)
    data = dataset(config.dataset).prepare()
    averaging = Policy.of(Averaging(config.model, Setting.of(data.schema, config)), data)
    alike = people.iloc[[0] * 5]
    assert np.ptp(averaging.propensity(alike), axis=1).max() <= 1e-6
    z = averaging.points.sum(1, keepdim=True) * 5 + averaging.encoded(people)[0][:, :1]
    np.testing.assert_allclose(averaging.propensity(people), torch.sigmoid(z).mean(-1), atol=1e-5)


# What people may look like


def test_spellings_do_not_matter_and_values_do(policy: Policy, people: pd.DataFrame) -> None:
    expected = policy.propensity(people)
    np.testing.assert_array_equal(policy.propensity(people.astype(str).map(str.upper)), expected)
    for change in ({"owner": True}, {"town": "York"}, {"rooms": 3}, {"income": 40.0}, {"children": 4}):
        assert (policy.propensity(people.assign(**change)) != expected).any()
    assert policy.propensity(people.head(0)).shape == (2, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy.propensity(people, strict=True)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("owner", "maybe", "'owner', row 1|'maybe'|False, True"),
        ("owner", [True] * 11 + [2], "'owner', row 12|2|False, True"),
        ("town", "Paris", "'town', row 1|'Paris'|Bath, Hull, York"),
        ("rooms", 0.5, "'rooms', row 1|0.5|1, 2, 3"),
        ("children", -1, "'children', row 1|-1"),
        ("children", [1] * 11 + [1.5], "'children', row 12|1.5"),
        ("children", "two", "'children', row 1|'two'"),
        ("income", np.inf, "'income', row 1|inf"),
        ("income", "1e400", "'income', row 1|'1e400'"),
        ("income", pd.Timestamp("2020-01-01"), "'income', row 1"),
        ("town", [["York"]] * 12, "'town'"),
        ("sex", "x", "'sex', row 1|'x'|male, female"),
        ("sex", ["male"] * 11 + [None], "'sex', row 12|an empty cell is no group"),
        ("s", 0, "'s', row 1|0|1, -1"),
    ],
)
def test_what_cannot_be_is_one_line(
    name: str, values: Any, expected: str, policy: Policy, people: pd.DataFrame
) -> None:
    message = refusal(policy, people.assign(**{name: values}))
    assert [part for part in expected.split("|") if part not in message] == []


def test_columns_that_are_not_there(policy: Policy, people: pd.DataFrame) -> None:
    lacking = refusal(policy, people.drop(columns=["income", "owner", "sex"]))
    assert lacking == "the table lacks columns that the policy reads: income, owner, s or sex"
    assert "more than one column 'town'" in refusal(policy, pd.concat([people, people[["town"]]], axis=1))
    with pytest.raises(FairAllError, match="must be a pandas DataFrame, a row per person, not dict"):
        policy.propensity(people.to_dict())


def test_single_unknown_levels_are_stood_in_for_with_a_warning(policy: Policy, people: pd.DataFrame) -> None:
    towns, rooms = ["Paris", "Rome", *people["town"][2:]], [9, *people["rooms"][1:]]
    unknown = people.assign(town=towns, rooms=rooms)
    message = told(policy, unknown)
    assert "column 'town': 2 of 12 rows hold 'Paris', 'Rome', not known from training" in message
    assert "taken as 'Hull'" in message
    assert "column 'rooms': 1 of 12 rows hold '9'" in message
    level = message.rsplit("'", 2)[1]
    stood_in = people.assign(town=["Hull", "Hull", *towns[2:]], rooms=[int(level), *rooms[1:]])
    with pytest.warns(UserWarning, match="not known"):
        found = policy.propensity(unknown)
    np.testing.assert_array_equal(found, policy.propensity(stood_in))
    assert "column 'town', row 1: 'Paris' is not known" in refusal(policy, unknown, strict=True)


def test_a_level_for_all_others_takes_them(loans: list[str], people: pd.DataFrame) -> None:
    policy, _ = built(*loans, "dataset.max_categories=2")
    elsewhere = people.assign(town="Paris")
    assert "12 of 12 rows hold 'Paris', not known from training and taken as '(other)'" in told(
        policy, elsewhere
    )
    assert "'Paris'" in refusal(policy, elsewhere, strict=True)
    policy.propensity(people.assign(town="(other)", rooms="(other)"), strict=True)


def test_missing_values_are_stood_in_for_as_in_training(policy: Policy, people: pd.DataFrame) -> None:
    lacking = people.assign(town=[None, *people["town"][1:]], income=["NA", *people["income"][1:]])
    median = policy.reader.features[0].fill
    filled = people.assign(town=["Hull", *people["town"][1:]], income=[median, *people["income"][1:]])
    np.testing.assert_array_equal(policy.propensity(lacking), policy.propensity(filled))
    empty = people.assign(income=None)
    assert "column 'income' has no value in any row" in told(policy, empty)
    assert "'income' has no value in any row" in refusal(policy, empty, strict=True)


@pytest.mark.parametrize(
    ("name", "ordinary", "far"), [("income", [-60, 160], [-80, 180]), ("children", [0, 8], [9, 1e6])]
)
def test_numbers_far_outside_the_training_range(
    name: str, ordinary: list[float], far: list[float], policy: Policy, people: pd.DataFrame
) -> None:
    for value in ordinary:
        policy.propensity(people.assign(**{name: value}))
    for value in far:
        message = told(policy, people.assign(**{name: [value, *people[name][1:]]}))
        assert f"column '{name}': 1 of 12 rows hold '{value}" in message
        assert "far outside the training range" in message


def test_the_sensitive_attribute_by_its_own_name_or_as_s(policy: Policy, people: pd.DataFrame) -> None:
    by_name = policy.propensity(people)
    coded = people.drop(columns="sex").assign(s=np.where(people["sex"] == "male", 1, -1))
    np.testing.assert_array_equal(policy.propensity(coded), by_name)
    np.testing.assert_array_equal(policy.propensity(coded.assign(s=coded["s"].map("{:+d}".format))), by_name)
    # `s` goes first: somebody asks what the policy would say to others.
    turned = policy.propensity(people.assign(s=-coded["s"]))
    assert (turned != by_name).any()


def test_a_raw_column_that_is_called_s(loans: list[str], tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    crowd().rename(columns={"sex": "s"}).to_csv(path, index=False)
    policy, _ = built(*loans, f"dataset.path={path}", "dataset.sensitive=s")
    words = crowd(12).rename(columns={"sex": "s"})
    coded = words.assign(s=words["s"].map({"male": 1, "female": -1}))
    np.testing.assert_array_equal(policy.propensity(words), policy.propensity(coded))


def test_the_example_is_somebody_whom_the_policy_takes(policy: Policy, credit: PreparedData) -> None:
    example = policy.reader.example()
    assert policy.propensity(example, strict=True).shape == (2, 2)
    assert set(example) == set(policy.reader.columns) - {"s"}
    reader = credit.reader
    _, s, warnings = reader.read(reader.example(), refuse_unknown=True, refuse_empty=True)
    assert (s.tolist(), warnings) == ([1, -1], [])


# The folder


def test_folders_that_are_no_policy_of_this_version(saved: Path, tmp_path: Path) -> None:
    *lines, last = (saved / SUMS).read_text().splitlines()
    assert [line.split("  ")[1] for line in lines] == ["config.yaml", "features.json", "weights.safetensors"]
    assert last.startswith("# 3 files; ")
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FairAllError, match=r"SUMS is missing, .*; give the folder policy/ of a run, or"):
            Policy.load(place)
    for line in lines:
        name = line.split("  ")[1]
        folder = shutil.copytree(saved, tmp_path / name)
        (folder / name).write_text("another")
        with pytest.raises(FairAllError, match=f"{folder / name} is missing, damaged"):
            Policy.load(folder)
    folder = shutil.copytree(saved, tmp_path / "policy")
    whole = (folder / SUMS).read_text()
    for kept in (whole.splitlines(keepends=True)[0], ""):
        (folder / SUMS).write_text(kept)
        with pytest.raises(FairAllError, match="SUMS is missing, damaged"):
            Policy.load(folder)
    (folder / SUMS).unlink()
    with pytest.raises(FairAllError, match="SUMS is missing, damaged, edited, or of another"):
        Policy.load(folder)
    plain = json.loads((folder / "features.json").read_text())
    assert plain["fairall"] == fairall.__version__
    (folder / "features.json").write_text(json.dumps(plain | {"format": 99, "fairall": "9.1"}))
    versions = rf"another version of fairall \(9\.1; this is {re.escape(fairall.__version__)}\)"
    with pytest.raises(FairAllError, match=versions):
        Policy.load(summed(folder))


def summed(folder: Path) -> Path:
    """The folder with sums that match."""
    write_sums(folder / SUMS, ["config.yaml", "features.json", "weights.safetensors"])
    return folder


def refused_folder(folder: Path) -> str:
    with pytest.raises(FairAllError) as caught:
        Policy.load(summed(folder))
    assert "\n" not in str(caught.value)
    return str(caught.value)


TARGET = "fairall.models.fairall.FairAll"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("seeds: 2", "seeds: 10000", "seeds=10000 is not possible: it must be as in weights.safetensors, 2"),
        ("cost:\n  value: 0.5", "cost:\n  value: -3", "cost.value=-3"),
        ("latent_size: 4", "latent_size: 100000000", "TooLargeError"),
        ("latent_size: 4", "latent_size: 3", "size mismatch"),
        ("latent_size: 4", "latent_sizes: 4", "model.latent_sizes: no such key, did you mean"),
        (TARGET, "fairall.models.nothing.FairAll", "model._target_=fairall.models.nothing.FairAll names no"),
        (TARGET, "os.path.join", "model._target_=os.path.join: its config_type is not a"),
        (TARGET, "antigravity.Fly", "--trust antigravity"),
    ],
)
def test_a_configuration_that_no_run_has_is_refused(
    old: str, new: str, told: str, saved: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(saved, tmp_path / "policy")
    text = (folder / "config.yaml").read_text()
    assert text.count(old) == 1
    (folder / "config.yaml").write_text(text.replace(old, new))
    assert told in refused_folder(folder)
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        ("features.0.scale", 0, "feature 'income': its scale"),
        ("features.0.lowest", 1e9, "feature 'income': its scale, lowest"),
        ("features.0.lowest", None, "feature 'income'"),
        ("features.0.kind", "word", 'features.0.kind cannot be "word"'),
        ("features.0.codes", [1.0], "feature 'income'"),
        ("features.3.codes", [2.0, 1.0], "feature 'town'"),
        ("features.3.codes", [1.0, 2.0], "feature 'town'"),
        ("features.3.levels", ["a", "a", "b"], "feature 'town'"),
        ("features.3.fill", 99, "feature 'town'"),
        ("features.1.name", "income", "'income'"),
        ("features.0.name", "s", "column 's'"),
        ("features", [], "features must be"),
        ("sensitive.advantaged", [], "all groups need values"),
        ("sensitive.advantaged", ["female"], "no value can be of several"),
        ("format", 3, "another version of fairall"),
    ],
)
def test_features_that_no_run_has_are_refused(
    place: str, value: Any, told: str, saved: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(saved, tmp_path / "policy")
    features = OmegaConf.load(folder / "features.json")
    OmegaConf.update(features, place, value, merge=False)
    (folder / "features.json").write_text(json.dumps(OmegaConf.to_container(features)))
    assert told in refused_folder(folder)


@pytest.mark.parametrize("change", ["shape", "name", "points", "seeds", "header"])
def test_weights_that_do_not_fit_are_refused(change: str, saved: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(saved, tmp_path / "policy")
    path = folder / "weights.safetensors"
    tensors = safetensors.torch.load_file(path)
    name = next(name for name in tensors if name != "points")
    if change == "shape":
        tensors[name] = tensors[name][1:].contiguous()
    elif change == "name":
        tensors["learner.other"] = tensors.pop(name)
    elif change == "points":
        tensors["points"] = tensors["points"][:, :-1].contiguous()
    else:
        tensors["points"] = tensors["points"].repeat(2, 1, 1)
    content = safetensors.torch.save(tensors)
    path.write_bytes(content[:-1] if change == "header" else content)
    assert refused_folder(folder).startswith(f"{folder}: cannot be loaded; run it anew (")


OWN_METHOD = """
from fairall.models.fairlog import FairLog
from pathlib import Path
Path({mark!r}).write_text("imported")

class Own(FairLog):
    pass
"""


@pytest.mark.parametrize("modules", [["own_room.own_method"], ["own_room"]])
def test_a_method_of_ones_own_is_imported_only_where_it_is_named(
    modules: list[str], loans: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "own_room").mkdir()
    (tmp_path / "own_room" / "own_method.py").write_text(OWN_METHOD.format(mark=str(mark)))
    monkeypatch.syspath_prepend(tmp_path)
    words = [word for word in loans if "latent_size" not in word]
    config = checked(compose_config(*words, "model=fairlog"))
    data = dataset(config.dataset).prepare()
    learner = config.model.build(Setting.of(data.schema, config))
    own = replace(config.model, _target_="own_room.own_method.Own")
    folder = tmp_path / "policy"
    Policy.of(learner, data).save(folder, replace(config, model=own))
    for others in ([], ["own"], ["own_room.own"], ["own_room.own_method.Own"]):
        with pytest.raises(FairAllError, match=r"--trust own_room, or load_policy\(\.\.\., modules="):
            load_policy(folder, modules=others)
    assert not mark.exists()
    policy = load_policy(folder, modules=modules)
    assert mark.read_text() == "imported"
    assert load_policy(folder).seeds == policy.seeds  # imported by now
    for name in ("own_room.own_method", "own_room"):
        del sys.modules[name]
