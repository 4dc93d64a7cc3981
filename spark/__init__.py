"""Spark SQL on icecomb tables.

    from icecomb.spark import session

    spark = session()
    spark.sql("CREATE TABLE lake.sales.orders (id BIGINT, ts TIMESTAMP) USING iceberg")

`configure(builder)` does the same to a builder of your own, and `icecomb spark-conf` prints the
`--conf` lines for `spark-sql`, `spark-shell` and `spark-submit`.
"""

from icecomb.format.public_name import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
