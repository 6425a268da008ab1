"""Studies of runs: what studies/*.yaml say of their sweeps, tables and figure, and one runner for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

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
    def said(self) -> Mapping[str, Any]:
        """What its file says."""
        return STUDIES[self.name]

    @property
    def title(self) -> str:
        """Title of the page."""
        return str(self.said["title"])

    def planned(self, overrides: Sequence[str]) -> Sequence[Planned]:
        """The runs that words pick."""
        return plan(SWEEPS[self.name], overrides, once=False)

    def keys(self) -> list[str]:
        """Keys of its tables and figure, of all data sets."""
        return [
            words(spec["key"], {"each": part})
            for spec in self.said["items"]
            for part in (grid(spec["of"]["sweep"][0])[spec["each"]].split(",") if "each" in spec else [""])
        ]

    def sections(self, planned: Sequence[Planned]) -> Mapping[str, Sequence[Item]]:
        """Tables and figure of runs, finished or missing, by heading."""
        found: dict[str, list[Item]] = {}
        for section, spec, runs in self.specs(planned):
            found.setdefault(section, []).append(self.item(spec, runs))
        return found

    def specs(self, planned: Sequence[Planned]) -> Iterator[tuple[str, dict[str, Any], list[Facts]]]:
        """Section, file's words and runs of each table and figure, those of each data set apart."""
        every = facts_of(planned, self.said["facts"])
        for spec in self.said["items"]:
            runs = chosen(every, spec.get("of", {}))
            parts = dict.fromkeys(run[spec["each"]] for run in runs) if "each" in spec else [None]
            for part in parts:
                own = chosen(runs, {spec["each"]: part}) if part else runs
                named = {name: words(spec[name], {"each": part}) for name in ("key", "title")}
                yield spec.get("section", ""), {**self.said.get("tables", {}), **spec, **named}, own

    def item(self, spec: Spec, runs: list[Facts]) -> Item:
        """The table or figure of some runs."""
        there, kind = finished(runs), spec.get("kind", "")
        if kind:
            # Of logs, there are no runs.
            return table(spec, runs, KINDS[kind](spec, runs) if there or kind == "held" else ())
        marks = [*MARKS[spec["key"]](there)]
        shown = {name: spec[name] for name in ("key", "title", "note")}
        planned = [run["planned"] for run in runs]
        return figure_of(
            draw=partial(draw_panels, marks), planned=planned, drawn=bool(marks), wide=True, **shown
        )
