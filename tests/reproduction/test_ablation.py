"""The study of parts of methods, from made-up runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reproduction.ablation import BIAS_MEASURES, EVERY, Arm, arm_of, cells_table, effects_table, world_label
from reproduction.board import UTILITY
from reproduction.plan import ABLATION, ABLATION_BIAS, ABLATION_WORLDS, Planned, plan
from tests.reproduction.collection import result

pytestmark = pytest.mark.whole

QUICK = ("preset=quick", "seeds=4", "splits=4")


def runs_of(dataset: str, sweeps: tuple[str, ...] = ABLATION) -> list[Planned]:
    """Runs of a data set whose utility tells their levels apart."""
    levels = {"cut": 0.01, "all": 0.02, "thresholds": -0.03, "latent": -0.05, "penalty": -0.04, "VAE": 0.1}
    found = []
    for k, one in enumerate(plan(sweeps, [f"dataset={dataset}", *QUICK], once=False)):
        run = result(*one.words, number=k)
        arm = arm_of(one.config)
        value = sum(levels.get(word, 0.0) for level in arm for word in level.split(" + "))
        noise = [0.001 * seed for seed in run.seeds]  # of the seed, so that pairs do not have it
        run = replace(run, per_seed=run.per_seed.assign(**{UTILITY.name: [value + of for of in noise]}))
        found.append(replace(one, run=run))
    return found


def test_every_cell_once() -> None:
    arms = [arm_of(one.config) for one in plan(ABLATION, ["dataset=credit", *QUICK])]
    assert len(set(arms)) == len(arms) == 26
    assert Arm("VAE", "latent", "drawn", "step") in arms
    assert Arm("net", "thresholds", "cut", "all") in arms
    assert not any("thresholds" in arm.fairness and arm.decision == "drawn" for arm in arms)


def test_effects_are_differences_of_cells_that_differ_in_one_factor() -> None:
    groups = {"Credit": runs_of("credit"), "COMPAS": runs_of("compas")}
    table = effects_table("ablation", "Effects", groups, over=EVERY)
    records = table.records[table.records["measure"] == UTILITY.name]
    found = {(one["effect"], one["group"]): one for one in records.to_dict("records")}
    for effect, difference, pairs in (
        ("cut − drawn", 0.01, 8),
        ("all − step", 0.02, 11),
        ("thresholds − none", -0.03, 6),
        ("latent − none", -0.05, 4),
        ("latent + thresholds − latent", -0.03, 2),
        ("penalty − none", -0.04, 4),
        ("VAE − net", 0.1, 6),
        ("stacked − net", 0.0, 2),
    ):
        for group, times in (("Credit", 1), (EVERY, 2)):
            one = found[effect, group]
            assert one["difference"] == pytest.approx(difference)
            assert one["high"] - one["low"] == pytest.approx(0.0, abs=1e-9)
            assert one["pairs"] == times * pairs


def test_a_missing_run_leaves_its_pairs_out() -> None:
    runs = runs_of("credit")
    runs[0] = replace(runs[0], run=None)
    table = effects_table("ablation", "Effects", {"Credit": runs}, over=EVERY)
    assert table.frame.loc[("cut − drawn", "Credit"), "pairs"] == "7"
    assert ("cut − drawn", EVERY) not in table.frame.index  # of one data set
    assert len(table.lacking) == 1
    assert len(cells_table("ablation_credit", "", {"": runs}).frame) == 25


def test_worlds_have_a_group_each() -> None:
    labels = {world_label(one) for one in runs_of("compas", ABLATION_WORLDS)}
    assert labels == {f"COMPAS, {n} applicants{drift}" for n in (16, 64) for drift in ("", ", drift")}


def test_cells_with_labels_that_reorder_people_are_on_one_label_and_show_the_ground_truth() -> None:
    runs = runs_of("synthetic", ABLATION_BIAS)
    assert [arm_of(one.config).label for one in runs] == [
        "VAE, latent, cut, all",
        "VAE, latent + thresholds, cut, all",
        "VAE, none, cut, all",
        "VAE, thresholds, cut, all",
        "net, none, cut, all",
        "net, thresholds, cut, all",
        "stacked, none, cut, all",
        "stacked, thresholds, cut, all",
    ]
    labels = [one.config.dataset["structural_model"]["variables"]["FYA"] for one in runs]
    assert all(label == {"k": 0.5, "ks": 0.8, "s": 0.3, "std": 0.5} for label in labels)
    cells = cells_table("ablation_bias", "", {"": runs}, BIAS_MEASURES)
    effects = effects_table("ablation_bias_effects", "", {"": runs}, of=BIAS_MEASURES)
    assert [*cells.frame.columns] == [*BIAS_MEASURES]
    assert {name for name, _ in effects.frame.index} >= {"latent − none", "latent + thresholds − thresholds"}
