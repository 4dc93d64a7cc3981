"""A planner that looks for idle catalogs ten times a second, not once a minute, and writes down what it lets go.

Runs as a program, in the place of Python: a file to write to, then `-m icecomb.spark.planner`. The first line of the
file is the number of this process, each other one the handle of a catalog that was let go.
"""

import os
import sys
from pathlib import Path

from icecomb.spark.planner import __main__ as planner
from icecomb.spark.planner.table import catalogs as open_catalogs
from icecomb.spark.planner.table.catalogs import Catalogs


def main() -> int:
    written = Path(sys.argv[1])
    written.write_text(f"{os.getpid()}\n")

    def write(handle: str) -> None:
        with written.open("a") as file:
            file.write(f"{handle}\n")

    class Watched(Catalogs):
        def __init__(self) -> None:
            super().__init__()
            self.when_let_go(write)

    open_catalogs.LONGEST_S = 0.1  # type: ignore[misc]
    sys.modules["icecomb.spark.planner.handlers"].Catalogs = Watched  # type: ignore[attr-defined]
    return planner.main()


if __name__ == "__main__":
    sys.exit(main())
