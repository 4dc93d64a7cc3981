"""The command ``icecomb``: tables, views, an embedded metastore, repairs, migration of Hive tables.

Data goes to stdout (text for people and awk, or ``--output json|csv``), progress and errors to
stderr.

Exit codes:
    0    done
    1    an error; nothing was half written
    2    wrong usage
    3    a migration is blocked, a comparison found differences, or `doctor` or `health` problems;
         for several tables, the worst of codes 4, 1, 3 and 0, in this order
    4    it is unknown whether a commit happened: check before doing it again
    130  interrupted
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line, ``sys.argv`` by default, and return its exit code."""
    from icecomb.catalog.cli.application import run

    return run(arguments)
