"""Compilation of the bridge for every Spark: `python -m icecomb.spark.packaging [SPARK_HOME...]`.

Classes come from the given installations and pyspark; others are fetched.
"""

from __future__ import annotations

import sys
from pathlib import Path

from icecomb.format.errors import IcecombError
from icecomb.spark.jar import compile_bridge, spark_home
from icecomb.spark.packaging.spark_classes import every_spark


def main() -> int:
    """Print for each Spark the path of its jar, or the error."""
    failed = False
    given = [spark_home(Path(each)) for each in sys.argv[1:]]
    for spark in every_spark([*given, spark_home()]):
        try:
            said = str(compile_bridge(spark))
        except IcecombError as error:
            failed = True
            said = str(error)
        sys.stdout.write(f"Spark {spark.version}, Scala {spark.scala}: {said}\n")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
