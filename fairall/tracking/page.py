"""What MLflow's page shows of an experiment and its runs: descriptions, a saved view, addresses."""

from __future__ import annotations

import json
from pathlib import Path

from fairall.display.format import CAUTION
from fairall.display.table import address, escaped
from fairall.results.card import ESSENTIAL, measure_table
from fairall.results.result import Result
from fairall.storage.run_folder import CARD

NOTE_TAG = "mlflow.note.content"  # description of an experiment or a run, Markdown
TRAINING = "workflowType=machine_learning"  # without it MLflow's page opens on language models
VIEW = "fairall"  # key of the saved view in addresses
VIEW_TAG = f"mlflow.sharedViewState.{VIEW}"  # where MLflow's page keeps a saved view, from version 3.15 on
WIDTH = 180  # pixels, of columns whose names are long
KIND_TAG = "fairall.kind"  # of a run: command, seed or report
PRESET_TAG = "fairall.preset"  # of runs with a preset
DIFFERS_TAG = "fairall.differs"  # what a run has otherwise than by default
SWEEP_TAG = "fairall.sweep"  # of runs that were made for a study
MAX_NOTE = 5000  # characters of a tag that all servers take
DESCRIPTION = f"""\
Fair decisions under selective labels: [FairAll](https://doi.org/10.1145/3531146.3533199) and its rivals.

- `METHOD DATASET KEY=VALUE ID`: the run of a command, with what is not the default (tag `{DIFFERS_TAG}`). Its
  description has the main measures; artifacts are `{CARD}`, `figures/`, `metrics.csv` and `summary.json`; the
  model `policy` can be served. Seeds are nested in it.
- `report`: tables and figures of many runs. `tags.fairall.sweep = 'NAME'` finds the runs of a study.
- `summary.*.mean` and `.std` are over seeds, not ×100. The other metrics are means over seeds by time step;
  `metrics.csv` has the curve of each seed.
- The column `{PRESET_TAG}` is empty where a run has no preset; {CAUTION}.
- The saved view "{VIEW}" (menu *Views*) shows commands and reports with the main measures.
"""


def experiment_tags(now: int) -> dict[str, str]:
    """Tags of an experiment by which MLflow's page describes it and shows its runs.

    The view is what "Save as new view" on the page keeps; versions without saved views ignore it.

    Args:
        now: time of the view, milliseconds since 1970.
    """
    measures = [f"metrics.`summary.{name}.mean`" for name in ESSENTIAL]
    tags = [f"tags.`fairall.{name}`" for name in ("model", "dataset", "initial_policy", "protocol", "cost")]
    columns = [*tags[:2], f"tags.`{DIFFERS_TAG}`", f"tags.`{PRESET_TAG}`", *measures, *tags[2:]]
    state = {
        "searchFilter": f"tags.`{KIND_TAG}` != 'seed'",
        "selectedColumns": columns,
        "columnOrder": columns,
        "columnWidths": dict.fromkeys(measures, WIDTH),
    }
    view = {"name": VIEW, "createdAt": now, "updatedAt": now, "state": json.dumps(state)}
    return {
        NOTE_TAG: DESCRIPTION,
        "mlflow.experimentKind": "custom_model_development",
        VIEW_TAG: json.dumps(view),
    }


def note_of_run(result: Result, experiment: str, run: str) -> str:
    """Description of a run: warnings, main measures, figure and links to its artifacts.

    Args:
        result: of the run.
        experiment: MLflow id.
        run: MLflow id.
    """
    links = ", ".join(
        _link(experiment, run, path)
        for path in (CARD, "figures/learning.png", "metrics.csv", "summary.json", "config.yaml")
    )
    lines = [f"{escaped(result.title)}. {links}.", ""]  # links first: long notes are folded
    lines += [f"- **Warning**: {escaped(warning)}." for warning in result.warnings]
    lines += ["", "Measures ×100:", "", measure_table(result, ESSENTIAL)]
    return "\n".join(lines)[:MAX_NOTE]


def note_of_report(folder: Path, experiment: str, run: str) -> str:
    """Description of a report: links to its page and its tables; arguments as for `note_of_run`."""
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))
    lines = [f"Page with all tables and figures: {_link(experiment, run, 'index.html')}.", ""]
    lines += [f"- {_link(experiment, run, path)}" for path in paths]
    return "\n".join(lines)[:MAX_NOTE]


def _link(experiment: str, run: str, path: str) -> str:
    """Link to an artifact on MLflow's page."""
    page = f"#/experiments/{experiment}/runs/{run}/artifacts/{address(path)}?{TRAINING}"
    return f"[{escaped(path)}]({page})"
