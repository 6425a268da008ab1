"""What MLflow's page shows of an experiment and its runs: descriptions and a saved view."""

from __future__ import annotations

import json
import time

from fairall.display.format import CAUTION
from fairall.results.card import ESSENTIAL
from fairall.storage.run_folder import CARD

NOTE_TAG = "mlflow.note.content"  # description of an experiment or a run, Markdown
VIEW = "fairall"  # key of the saved view in addresses
VIEW_TAG = f"mlflow.sharedViewState.{VIEW}"  # where MLflow's page stores a saved view, from version 3.15 on
KIND_TAG = "fairall.kind"  # of a run: command
DESCRIPTION = f"""\
Fair decisions under selective labels: [FairAll](https://doi.org/10.1145/3531146.3533199) and its rivals.

- `METHOD DATASET ID`: the run of a command, whose parameters are all keys of the configuration ("Show diff
  only" of MLflow's comparison has those in which runs differ). Its description is the model card; artifacts
  are `{CARD}`, `figures/`, `metrics.csv` and `summary.json`;
  the model `policy` can be served.
- `tags.fairall.sweep = 'NAME'` finds the runs of a study.
- `summary.*.mean` and `.std` are over seeds, not ×100; the step of `seeds.*` is the number of a seed. The
  other metrics are means over seeds by time step; `metrics.csv` has the curve of each seed.
- The column `fairall.preset` is empty where a run has no preset; {CAUTION}.
- The saved view "{VIEW}" (menu *Views*) shows commands with the main measures.
"""


def experiment_tags() -> dict[str, str]:
    """Tags of an experiment: its description and the saved view, in the form of "Save as new view"."""
    now = int(1000 * time.time())
    measures = [f"metrics.`summary.{name}.mean`" for name in ESSENTIAL]
    names = ("model", "dataset", "preset", "initial_policy", "protocol", "cost")
    tags = [f"tags.`fairall.{name}`" for name in names]
    columns = [*tags[:3], *measures, *tags[3:]]
    state = {
        "searchFilter": f"tags.`{KIND_TAG}` != 'seed'",  # which earlier versions logged
        "selectedColumns": columns,
        "columnOrder": columns,
    }
    view = {"name": VIEW, "createdAt": now, "updatedAt": now, "state": json.dumps(state)}
    kind = {"mlflow.experimentKind": "custom_model_development"}
    return kind | {NOTE_TAG: DESCRIPTION, VIEW_TAG: json.dumps(view)}
