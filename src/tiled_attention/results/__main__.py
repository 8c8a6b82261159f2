"""`python -m tiled_attention.results list | show | diff | prune`."""

import argparse
import io
import os
import sys
from collections.abc import Sequence

from tiled_attention.compose import ConfigError
from tiled_attention.plan import LOCAL
from tiled_attention.results.diff import diff
from tiled_attention.results.folders import LEAST_PREFIX
from tiled_attention.results.list import list_results
from tiled_attention.results.prune import prune
from tiled_attention.results.show import show
from tiled_attention.sources import SourceError
from tiled_attention.store import StoreError

ROWS_SHOWN = 40
VERSIONS = f"""A version is named by its first {LEAST_PREFIX} characters or more; where several
results share it, by PLATFORM/VERSION, STEP/VERSION or PLATFORM/STEP/VERSION."""
OVERRIDES = """Results are current if the present source and configuration plan them; Hydra
overrides such as experiment=smoke change the configuration."""
UNNEEDED = f"""Lists results that are not current, and what killed runs left half-written; deletes
them with --yes. {OVERRIDES}"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code, 2 for what its user can mend."""
    chosen = vars(parser().parse_args(arguments))
    run = chosen.pop("run")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # where the locale has no UTF-8
    try:
        run(**chosen)
        sys.stdout.flush()
    except (StoreError, ConfigError, SourceError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # a reader such as `head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser; each command's function is its `run`."""
    whole = argparse.ArgumentParser(
        prog="python -m tiled_attention.results",
        description="List, show, compare and prune versioned results.",
        epilog="COMMAND --help says more.",
    )
    commands = whole.add_subparsers(required=True, metavar="list | show | diff | prune")

    command = commands.add_parser(
        "list", help="what there is, and what is current", description=OVERRIDES
    )
    command.add_argument("--platform", help="of this platform only")
    command.add_argument("--step", help="of this step only")
    command.add_argument("overrides", nargs="*", help="Hydra overrides")
    command.set_defaults(run=list_results)

    command = commands.add_parser(
        "show", help="where one result came from, and its tables", description=VERSIONS
    )
    command.add_argument("version", help="which result")
    _add_rows(command)
    command.set_defaults(run=show)

    command = commands.add_parser(
        "diff", help="what two results of a step differ in", description=VERSIONS
    )
    command.add_argument("a", metavar="A", help="which result")
    command.add_argument("b", metavar="B", help="another one of the same step")
    _add_rows(command)
    command.set_defaults(run=diff)

    command = commands.add_parser(
        "prune", help="what can go: older and half-written results", description=UNNEEDED
    )
    command.add_argument(
        "--platform", default=LOCAL, help="of this platform; default: %(default)s"
    )
    command.add_argument("--yes", action="store_true", dest="delete", help="delete what is listed")
    command.add_argument("overrides", nargs="*", help="Hydra overrides")
    command.set_defaults(run=prune)
    return whole


def _add_rows(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--rows", type=_count, default=ROWS_SHOWN, help="of each table; default: %(default)s"
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: a whole number from 1 on is accepted")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
