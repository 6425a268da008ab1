"""Table of the runs that no other table of the report shows."""

from __future__ import annotations

from collections.abc import Sequence

from fairall.report import labels
from fairall.report.comparable import marked
from fairall.report.table import Cell, Row, Table, plus_minus
from fairall.results.finished import Run

COMPARE = "python -m fairall.report compare RUN RUN"
MEASURES = (*labels.EFFECTIVE, *(measure for measure in labels.TEMPORAL if measure.name.startswith("mean_")))


def other_runs(runs: Sequence[Run]) -> Table:
    """A row per run: method, initial policy, cost, seeds, main measures and folder, by data set."""
    rows, records = [], []
    for run in sorted(runs, key=lambda run: (run.name("dataset"), run.cost, run.name("model"), run.path)):
        # The temporary copy of a run from MLflow is deleted afterwards: show its id.
        where = str(run.path) if run.path.is_dir() else run.path.name
        values = {measure.name: run.per_seed(measure.name) for measure in MEASURES}
        shown = {
            key: "" if series.empty else plus_minus(series.mean(), series.std() if len(series) > 1 else None)
            for key, series in values.items()
        }
        setting = [run.name("initial_policy"), f"{run.cost:g}", str(len(run.seeds))]
        cells = [Cell(text) for text in (*setting, *shown.values(), where)]
        name = marked(labels.method(run.name("model")), run)
        rows.append(Row(labels.dataset(run.name("dataset")), name, cells))
        records.append(
            {
                "dataset": run.name("dataset"),
                "model": run.name("model"),
                "initial_policy": run.name("initial_policy"),
                "cost": run.cost,
                "preset": run.config.get("preset"),
                "seeds": len(run.seeds),
                **{key: None if series.empty else float(series.mean()) for key, series in values.items()},
                "folder": where,
            }
        )
    headings = [measure.heading for measure in MEASURES]
    return Table(
        "other_runs",
        "Runs that are not in the paper's tables and figures",
        f"×100, mean (standard deviation over seeds). To compare runs: {COMPARE}",
        ["initial policy", "cost", "seeds", *headings, "folder"],
        rows,
        "",
        records=records,
    )
