"""`python -m fairall`, and the command `fairall`."""

import sys

from fairall.runtime.process import run_command


def main() -> int:
    """Run the command line and return the exit code."""
    return run_command(_main)


def _main(words: list[str]) -> int:
    if words[:1] == ["completion"]:
        return _completion(words[1:])
    from fairall.main import cli  # slow, so that Ctrl-C during the import is reported too

    return cli()


def _completion(words: list[str]) -> int:
    # Without fairall.main, which imports Hydra: a shell asks at every TAB.
    from fairall.config.completion import completion
    from fairall.errors import FairAllError

    try:
        print(completion(words), end="")
    except FairAllError as error:
        print(f"fairall: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
