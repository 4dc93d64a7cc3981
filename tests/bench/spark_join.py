"""A star join in Spark 4.1: what a filter on the small table spares of the large one.

    python -m tests.bench.spark_join --work build/bench/spark_join

icecomb and Iceberg's runtime 1.12 read the same files in turns: a table of facts with a partition
for each shop, joined with the shops of one city. `all` is the same join written so that Spark finds
no column to prune by.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tests.bench.measure import parser
from tests.bench.spark_read import Contestant, Sparks, compare

_PEERS: Final = ("icecomb", "iceberg")
_SHOPS: Final = 200
_QUERY: Final = (
    "SELECT count(*), sum(f.price), max(f.note) FROM lake.db.sales f JOIN lake.db.shops s ON {} "
    "WHERE s.city = 'c7'"
)
_MAKE: Final = (
    (
        "CREATE TABLE lake.db.sales USING iceberg PARTITIONED BY (shop) AS SELECT id, "
        f"CAST(id % {_SHOPS} AS INT) AS shop, id % 1000 AS price, sha1(CAST(id AS STRING)) AS note "
        "FROM range({})"
    ),
    (
        "CREATE TABLE lake.db.shops USING iceberg AS SELECT CAST(id AS INT) AS id, "
        f"concat('c', id % 40) AS city FROM range({_SHOPS})"
    ),
)


def make(work: Path, rows: int) -> None:
    """The tables, unless they are there."""
    done = work / f"made-{rows}"
    if done.exists():
        return
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    with ExitStack() as stack:
        sparks = Sparks(work, ("icecomb",), stack)
        sparks.sql("icecomb", "CREATE NAMESPACE lake.db")
        for statement in _MAKE:
            sparks.sql("icecomb", statement.format(rows))
    done.touch()


def main() -> None:
    """Print the line."""
    arguments = parser(__doc__)
    arguments.add_argument("--work", type=Path, required=True, help="for the tables")
    arguments.add_argument("--rows", type=int, default=5_000_000)
    arguments.add_argument("--warm", type=int, default=2, help="turns that do not count")
    arguments.set_defaults(repeat=5)
    given = arguments.parse_args()
    given.work = given.work.resolve()
    make(given.work, given.rows)
    pruned, whole = _QUERY.format("f.shop = s.id"), _QUERY.format("f.shop + 0 = s.id + 0")
    contestants = {
        **{peer: Contestant(peer, pruned) for peer in _PEERS},
        **{f"{peer} all": Contestant(peer, whole) for peer in _PEERS},
    }
    against = [("icecomb", "iceberg"), ("icecomb", "icecomb all"), ("iceberg", "iceberg all")]
    with ExitStack() as stack:
        sparks = Sparks(given.work, _PEERS, stack)
        compare(sparks, "star join", contestants, against, given, measure="spark_join")


if __name__ == "__main__":
    main()
