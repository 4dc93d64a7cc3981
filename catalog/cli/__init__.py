"""The command ``icecomb``: tables, views, an own metastore, repairs, migration of Hive tables.

Data go to stdout (text made for reading and for awk, or ``--output json|csv``), progress and errors
to stderr.

Exit codes:
    0    done
    1    an error; nothing was half written
    2    wrong usage
    3    a migration is blocked, a comparison found differences, or `doctor` or `health` problems;
         of several tables, codes 4, 1, 3 and 0 in this order: the worst of them
    4    it is unknown whether a commit happened: look before doing it again
    130  interrupted
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line, ``sys.argv`` by default, and give back its exit code."""
    from icecomb.catalog.cli.application import run

    return run(arguments)
