"""Spark 3.5 of Scala 2.13, which pip has not: the programs of pyspark with jars of Maven Central."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock

from tests.peers.ivy import KEPT, fetch_all

SCALA_2_13 = "3.5_2.13"
"""What it is called beside minor versions."""

_SPARK = "org.apache.spark:spark-hive_2.13:3.5.4"
_BESIDE = ("bin", "sbin", "python", "data", "licenses")


def of_scala_2_13(package: Path) -> Path:
    """Its `SPARK_HOME`.

    Args:
        package: The folder of a pyspark 3.5, for all but the jars.
    """
    home = KEPT / "files" / "spark-3.5-scala-2.13"
    jars = fetch_all(_SPARK)
    with FileLock(f"{home}.lock"):
        home.mkdir(exist_ok=True)
        for name in _BESIDE:
            _link(home / name, package / name)
        _link(home / "jars", jars)
    return home


def _link(link: Path, target: Path) -> None:
    if link.is_symlink():
        link.unlink()
    if target.exists():
        link.symlink_to(target)
