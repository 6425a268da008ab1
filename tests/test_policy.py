"""What a saved policy says of raw people, and what it refuses."""

import json
import random
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
import yaml
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

FILES = ["config.yaml", "features.json", "weights.safetensors"]
TOWNS = ["Bath", "Hull", "York"]
CASES = yaml.safe_load((Path(__file__).parent / "data" / "policy.yaml").read_text())
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


def changed(people: pd.DataFrame, columns: dict[str, Any]) -> pd.DataFrame:
    """The people with other columns of one value, or other first cells of columns."""
    return people.assign(
        **{
            name: [*cells, *people[name][len(cells) :]] if isinstance(cells, list) else cells
            for name, cells in columns.items()
        }
    )


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
@pytest.mark.parametrize(
    ("size", "gain", "most"), [(2, 1.0, 0.01), (20, 1.0, 0.01), (2, 2.0, 0.02), (20, 2.0, 0.02)]
)
def test_points_are_as_good_as_very_many_draws(
    size: int, gain: float, most: float, credit: PreparedData
) -> None:
    config = typed_config("seeds=2", f"model.latent_size={size}", "protocol.vae_start=random")
    given = Setting.of(credit.schema, config)
    many = sharpened(FairAll(replace(config.model, propensity_samples=2**15), given), gain)
    x, s = (of[:6].expand(2, *of[:6].shape) for of in (credit.test.x, credit.test.s))
    with torch.no_grad():  # so that probabilities lie on both sides of ½, where errors are largest
        assert many.policy_net is not None
        logit = many.policy_net(many.model.latent_mean(x, s))
        many.policy_net.last.bias.sub_(logit.median(1, keepdim=True).values)

    def by(streams: SeedStreams) -> Tensor:
        return in_chunks(lambda x, s: many.propensity(x, s, streams), x, s, rows=1)

    truth = by(SeedStreams([0, 1], "truth"))
    error = {}
    for n in (16, POINTS):
        points = torch.stack([normal_points(size, n, seed) for seed in (0, 1)])
        error[n] = (by(FixedSamples([0, 1], points)) - truth).square().mean().sqrt()
    assert error[POINTS] <= most
    assert error[16] > 2 * error[POINTS], "the number of points matters here"


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


@pytest.mark.parametrize(("columns", "expected"), CASES["refused"])
def test_what_cannot_be_is_one_line(
    columns: dict[str, Any], expected: str, policy: Policy, people: pd.DataFrame
) -> None:
    message = refusal(policy, changed(people, columns))
    assert [part for part in expected.split("|") if part not in message] == []


@pytest.mark.parametrize(("columns", "same"), CASES["same"])
def test_missing_values_and_other_spellings_are_taken_as_in_training(
    columns: dict[str, Any], same: dict[str, Any], policy: Policy, people: pd.DataFrame
) -> None:
    found, expected = (policy.propensity(changed(people, one)) for one in (columns, same))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("columns", "same", "told", "strict"), CASES["warned"])
def test_unknown_and_far_values_are_told(
    columns: dict[str, Any],
    same: dict[str, Any],
    told: str,
    strict: str,
    policy: Policy,
    people: pd.DataFrame,
) -> None:
    unknown, known = changed(people, columns), changed(people, same)
    with pytest.warns(UserWarning, match="row") as caught:
        found = policy.propensity(unknown)
    (warning,) = caught
    assert warning.filename == __file__
    assert [part for part in told.split("|") if part not in str(warning.message)] == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(found, policy.propensity(known))
    if strict:
        assert strict in refusal(policy, unknown, strict=True)


def test_columns_that_are_not_there(policy: Policy, people: pd.DataFrame) -> None:
    lacking = refusal(policy, people.drop(columns=["income", "owner", "sex"]))
    assert lacking == "the table lacks columns that the policy reads: income, owner, s or sex"
    assert "more than one column 'town'" in refusal(policy, pd.concat([people, people[["town"]]], axis=1))
    with pytest.raises(FairAllError, match="must be a pandas DataFrame, a row per person, not dict"):
        policy.propensity(people.to_dict())


def test_a_level_for_all_others_takes_them(loans: list[str], people: pd.DataFrame) -> None:
    policy, _ = built(*loans, "dataset.max_categories=2")
    elsewhere = people.assign(town="Paris")
    with pytest.warns(UserWarning, match=r"12 of 12 rows hold 'Paris', not known .* taken as '\(other\)'"):
        policy.propensity(elsewhere)
    assert "'Paris'" in refusal(policy, elsewhere, strict=True)
    policy.propensity(people.assign(town="(other)", rooms="(other)"), strict=True)


def test_the_sensitive_attribute_by_its_own_name_or_as_s(policy: Policy, people: pd.DataFrame) -> None:
    by_name = policy.propensity(people)
    coded = people.drop(columns="sex").assign(s=people["sex"].map({"male": 1, "female": -1}))
    for s in (coded["s"], coded["s"].map("{:+d}".format)):
        np.testing.assert_array_equal(policy.propensity(coded.assign(s=s)), by_name)
    # `s` goes first: somebody asks what the policy would say to others.
    assert (policy.propensity(people.assign(s=-coded["s"])) != by_name).any()


def test_a_raw_column_that_is_called_s(loans: list[str], tmp_path: Path) -> None:
    words = crowd().rename(columns={"sex": "s"})
    words.to_csv(tmp_path / "s.csv", index=False)
    policy, _ = built(*loans, f"dataset.path={tmp_path / 's.csv'}", "dataset.sensitive=s")
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
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FairAllError, match=r"SUMS is missing, .*; give the folder policy/ of a run, or"):
            Policy.load(place)
    for name in FILES:
        folder = shutil.copytree(saved, tmp_path / name)
        (folder / name).write_text("another")
        with pytest.raises(FairAllError, match=f"{folder / name} is missing, damaged, edited, or of another"):
            Policy.load(folder)
    folder = shutil.copytree(saved, tmp_path / "policy")
    *lines, last = (folder / SUMS).read_text().splitlines(keepends=True)
    assert ([line.split()[1] for line in lines], last.startswith("# 3 files; ")) == (FILES, True)
    for kept in (lines[0], ""):
        (folder / SUMS).write_text(kept)
        with pytest.raises(FairAllError, match="SUMS is missing, damaged"):
            Policy.load(folder)
    plain = json.loads((folder / "features.json").read_text())
    assert plain["fairall"] == fairall.__version__
    (folder / "features.json").write_text(json.dumps(plain | {"format": 99, "fairall": "9.1"}))
    assert f"another version of fairall (9.1; this is {fairall.__version__})" in refused_folder(folder)


def refused_folder(folder: Path) -> str:
    write_sums(folder / SUMS, FILES)
    with pytest.raises(FairAllError) as caught:
        Policy.load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "place", "value", "told"), [(name, *row) for name in FILES[:2] for row in CASES[name]]
)
def test_values_that_no_run_has_are_refused(
    name: str, place: str, value: Any, told: str, saved: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(saved, tmp_path / "policy")
    content = OmegaConf.load(folder / name)
    OmegaConf.update(content, place, value, merge=False)
    (folder / name).write_text(json.dumps(OmegaConf.to_container(content)))
    assert told in refused_folder(folder)
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("change", ["shape", "name", "points", "seeds", "header"])
def test_weights_that_do_not_fit_are_refused(change: str, saved: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(saved, tmp_path / "policy")
    tensors = safetensors.torch.load_file(folder / FILES[2])
    points, name = tensors["points"], next(name for name in tensors if name != "points")
    tensors |= {
        "shape": {name: tensors[name][1:].contiguous()},
        "name": {"learner.other": tensors[name]},
        "points": {"points": points[:, :-1].contiguous()},
        "seeds": {"points": points.repeat(2, 1, 1)},
    }.get(change, {})
    if change == "name":
        del tensors[name]
    content = safetensors.torch.save(tensors)
    (folder / FILES[2]).write_bytes(content[: -1 if change == "header" else None])
    assert refused_folder(folder).startswith(f"{folder}: cannot be loaded; run it anew (")


OWN_METHOD = """
from fairall.models.fairlog import FairLog
from pathlib import Path
Path("mark").write_text("imported")

class Own(FairLog):
    pass
"""


@pytest.mark.parametrize("module", ["own_room.own_method", "own_room"])
def test_a_method_of_ones_own_is_imported_only_where_it_is_named(
    module: str, loans: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, folder = tmp_path / "own_room" / "own_method.py", tmp_path / "policy"
    own.parent.mkdir()
    own.write_text(OWN_METHOD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    config = checked(compose_config(*(word for word in loans if "latent" not in word), "model=fairlog"))
    data = dataset(config.dataset).prepare()
    policy = Policy.of(config.model.build(Setting.of(data.schema, config)), data)
    policy.save(folder, replace(config, model=replace(config.model, _target_="own_room.own_method.Own")))
    for others in ([], ["own"], ["own_room.own"], ["own_room.own_method.Own"]):
        with pytest.raises(FairAllError, match=r"--trust own_room, or load_policy\(\.\.\., modules="):
            load_policy(folder, modules=others)
    assert not (tmp_path / "mark").exists()
    load_policy(folder, modules=[module])
    assert (tmp_path / "mark").exists()
    assert load_policy(folder).seeds == policy.seeds  # imported by now
    for name in ("own_room.own_method", "own_room"):
        del sys.modules[name]
