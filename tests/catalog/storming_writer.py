"""Appends rows one by one while the metastore comes and goes, and says what became of each.

python storming_writer.py URI TABLE FIRST TIMES BACK; the file BACK says that the metastore came back.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from icecomb.catalog import load_catalog
from icecomb.catalog.hive import lock
from icecomb.format.errors import CommitStateUnknownError, IcecombError


class Sweeps:
    """Pauses between tries to release a lock: until the metastore is back, and a few after that."""

    def __init__(self, back: Path) -> None:
        self._back = back

    def __iter__(self) -> Iterator[float]:
        while not self._back.exists():
            yield 0.5
        yield from (0.5, 1, 2)


def main() -> None:
    uri, name, first, times, back = sys.argv[1:]
    lock.SWEEPS_S = Sweeps(Path(back))
    table = load_catalog("storm", uri=uri).load_table(name)
    said: dict[str, list[int]] = {"done": [], "failed": [], "unknown": []}
    for row in range(int(first), int(first) + int(times)):
        rows = pa.table({"id": pa.array([row], pa.int64())})
        try:
            table.append(rows)
        except CommitStateUnknownError:
            said["unknown"].append(row)
        except IcecombError:
            said["failed"].append(row)
            time.sleep(0.5)
        else:
            said["done"].append(row)
    for thread in threading.enumerate():
        if thread.name.startswith("release of"):
            thread.join()
    print(json.dumps(said))


if __name__ == "__main__":
    main()
