"""Commands of the package in the process that calls them."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

Ended = subprocess.CompletedProcess[str]


def undrawn(figure: Any, path: Path) -> None:
    """Write a file in place of a figure of a run: drawing is most of the time of a small run."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"a figure")


def typed(
    *words: str, cwd: Path, module: str = "fairall", encoding: str = "utf-8", drawn: bool = False
) -> Ended:
    """Run `python -m MODULE *WORDS` in this process, which has imported torch already.

    Figures of runs are not drawn, unless `drawn`. Working folder, environment, import path, signal handlers
    and modules of `cwd` are afterwards as before.
    """
    from hydra.core.global_hydra import GlobalHydra

    from fairall.results import figures

    main = importlib.import_module(f"{module}.__main__").main
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding) for _ in range(2))
    importlib.invalidate_caches()
    try:
        with (
            contextlib.chdir(cwd),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.object(sys, "argv", [module, *words]),
            mock.patch.object(sys, "path", [*sys.path]),
            mock.patch.dict(os.environ),
            contextlib.nullcontext() if drawn else mock.patch.object(figures, "save_figure", undrawn),
        ):
            try:
                code = main()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        GlobalHydra.instance().clear()
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for name, loaded in [*sys.modules.items()]:
            if (getattr(loaded, "__file__", None) or "").startswith(f"{cwd}{os.sep}"):
                del sys.modules[name]
    out.seek(0)
    err.seek(0)
    return subprocess.CompletedProcess([module, *words], code, out.read(), without_compiling(err.read()))


def without_compiling(told: str) -> str:
    """What was printed to stderr, without the lines about the first compilation, which are no errors."""
    return "".join(line for line in told.splitlines(True) if not line.startswith("fairall: compiling"))
