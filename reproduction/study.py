"""Studies of runs: what studies/*.yaml say of their sweeps, tables and figure, and one runner for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fairall import load_results, places
from fairall.display import Item
from reproduction.items import figure_of
from reproduction.kinds import KINDS, Spec, table
from reproduction.pages import publish, refuse
from reproduction.plan import STUDIES, SWEEPS, Planned, distinct, grid, plan, with_runs
from reproduction.runs import make
from reproduction.study_figures import MARKS, draw_panels
from reproduction.values import Facts, chosen, facts_of, finished, words


@dataclass(frozen=True)
class Study:
    """Runs of some sweeps and the page that is made of them.

    Attributes:
        name: of its file in studies/, of the command, and of the folder in `outputs_dir`.
    """

    name: str

    def __call__(
        self,
        overrides: Sequence[str],
        folder: Path | None = None,
        into: Sequence[Path] = (),
        jobs: int | None = None,
    ) -> bool:
        """Make the runs that are missing, and write a page of them; return whether all runs are there.

        Args:
            overrides: words that pick from the axes of the sweeps, or are added to every command.
            folder: of the page; None: that of the study's name in outputs_dir.
            into: pages of the documentation with blocks to fill.
            jobs: number of runs at once; None: one per core.
        """
        config = places(overrides)
        refuse(into, config)
        planned = self.planned(overrides)
        failures = make(distinct(planned), overrides, jobs=jobs)
        found = with_runs(planned, load_results(Path(config.outputs_dir) / "runs").results)
        title, made = f"FairAll: {self.title}", self.sections(found)
        publish(self.name, title, made, config, folder=folder, into=into, known=self.keys, runs=found)
        return not failures

    @property
    def title(self) -> str:
        """Title of the page."""
        return str(STUDIES[self.name]["title"])

    def planned(self, overrides: Sequence[str]) -> Sequence[Planned]:
        """The runs that words pick."""
        return plan(SWEEPS[self.name], overrides, once=False)

    def keys(self) -> list[str]:
        """Keys of its tables and figure, of all data sets."""
        return [
            words(spec["key"], {"each": part})
            for spec in STUDIES[self.name]["items"]
            for part in (grid(spec["of"]["sweep"][0])[spec["each"]].split(",") if "each" in spec else [""])
        ]

    def sections(self, planned: Sequence[Planned]) -> Mapping[str, Sequence[Item]]:
        """Tables and figure of runs, finished or missing, by heading; those of each data set apart."""
        found: dict[str, list[Item]] = {}
        study = STUDIES[self.name]
        every = facts_of(planned, study["facts"])
        for spec in study["items"]:
            runs = chosen(every, spec.get("of", {}))
            parts = dict.fromkeys(run[spec["each"]] for run in runs) if "each" in spec else [None]
            for part in parts:
                own = chosen(runs, {spec["each"]: part}) if part else runs
                named = {name: words(spec[name], {"each": part}) for name in ("key", "title")}
                made = item({**study.get("tables", {}), **spec, **named}, own)
                found.setdefault(spec.get("section", ""), []).append(made)
        return found


def item(spec: Spec, runs: list[Facts]) -> Item:
    """The table or figure of some runs."""
    there, kind = finished(runs), spec.get("kind")
    if kind:
        # Of logs, there are no runs.
        return table(spec, runs, KINDS[kind](spec, runs) if there or kind == "held" else ())
    marks = [*MARKS[spec["key"]](there)]
    draw, planned = partial(draw_panels, marks), [run["planned"] for run in runs]
    of_page = spec["key"], spec["title"], spec["note"]
    return figure_of(*of_page, draw, planned, drawn=bool(marks), wide=True)
