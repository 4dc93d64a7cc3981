"""Spark SQL on icecomb tables.

    from icecomb.spark import session

    spark = session()
    spark.sql("CREATE TABLE lake.sales.orders (id BIGINT, ts TIMESTAMP) USING iceberg")

`configure(builder)` does the same to a builder of your own, and `icecomb spark-conf` prints the
`--conf` lines for `spark-sql`, `spark-shell` and `spark-submit`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icecomb.spark.application import configure, session
    from icecomb.spark.conf import spark_conf

__all__ = ["configure", "session", "spark_conf"]

_HOMES = {
    "configure": "icecomb.spark.application",
    "session": "icecomb.spark.application",
    "spark_conf": "icecomb.spark.conf",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
