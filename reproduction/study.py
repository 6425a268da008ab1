"""Studies of runs: which sweeps they make, what is shown of them, and one runner for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairall import load_results, places
from fairall.display import Item
from reproduction.pages import publish, refuse
from reproduction.plan import Planned, distinct, plan, with_runs
from reproduction.runs import make

Sections = Callable[[Sequence[Planned]], Mapping[str, Sequence[Item]]]
"""Tables and figures by heading, of runs."""


@dataclass(frozen=True)
class Study:
    """Runs of some sweeps and the page that is made of them.

    Attributes:
        name: of the command, and of the folder in `outputs_dir`.
        title: of the page.
        sweeps: of its runs.
        sections: tables and figures of the runs, finished or missing, by heading.
        known: keys of further tables and figures, which other runs have.
    """

    name: str
    title: str
    sweeps: Sequence[str]
    sections: Sections
    known: Callable[[], Iterable[str]] = tuple

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
        planned = plan(self.sweeps, overrides, once=False)
        failures = make(distinct(planned), overrides, jobs=jobs)
        found = with_runs(planned, load_results(Path(config.outputs_dir) / "runs").results)
        publish(
            self.name,
            f"FairAll: {self.title}",
            self.sections(found),
            config,
            folder=folder,
            into=into,
            known=self.known,
            runs=found,
        )
        return not failures


def unnamed(items: Callable[[Sequence[Planned]], Sequence[Item]]) -> Sections:
    """Tables and figures in one section without a heading, as `Study.sections`."""
    return lambda found: {"": items(found)}
