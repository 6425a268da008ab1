"""What a user writes, for a type checker: `mypy --strict` takes it from an installed wheel."""

from typing import assert_type

import pandas as pd
from matplotlib.axes import Axes
from omegaconf import DictConfig

import fairall
from fairall import Ledger, Result, compose_config, load_dataset, load_policy, load_result, run
from fairall.data.table import Table
from fairall.evaluate import Comparison, Evaluation, compare, evaluate
from fairall.policy import Policy


def runs() -> Result:
    composed = compose_config("model=greedy", seeds=3)
    assert_type(composed, DictConfig)
    assert_type(run(composed), Result)
    assert_type(fairall.run("model=greedy", "dataset=credit"), Result)
    assert_type(fairall.run(model="greedy", dataset="credit", seeds=3).title, str)
    return load_result("outputs/runs/greedy/credit/d01d30a02070")


def looked_at(result: Result, evaluation: Evaluation, ledger: Ledger) -> str:
    table = load_dataset("credit").table()
    assert_type(table, Table)
    for one in (result, evaluation, ledger, table):
        frame: pd.DataFrame = one.summary() if len(repr(one)) else one.to_frame()
        axes: Axes = one.plot()
        axes.set_title(f"{one.title}, {len(frame)}")
    return result.identity


def decides(people: pd.DataFrame, place: str) -> Ledger:
    policy = load_policy("run")
    assert_type(policy, Policy)
    ledger = Ledger.start(place, "model=greedy")
    decided: pd.DataFrame = ledger.decide(people)
    assert_type(ledger.outcomes(decided), dict[str, int])
    return ledger


def judged(log: pd.DataFrame) -> tuple[Evaluation, Comparison]:
    return evaluate("p", log, decision="granted"), compare("p", None, log, decision="granted")
