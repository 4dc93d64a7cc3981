"""The bridge's jar for the Spark at hand: ready-made in a wheel, compiled once from a checkout.

A built wheel carries one jar per Spark minor version, so its users need a Java runtime and no
compiler. A checkout (or an install straight from the repository) carries the Java sources: they
are compiled with the JDK against the jars of the Spark that is installed, at first use, and kept
in the user's cache per Spark version and source hash.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from icecomb.format.errors import MissingDependencyError, UnsupportedError

SUPPORTED: Final = ("4.3",)
"""Spark minor versions the bridge is compiled and tested for."""

_HERE: Final = Path(__file__).resolve().parent
_CORE_JAR: Final = re.compile(r"spark-core_[0-9.]+-(?P<version>\d+\.\d+\.\d+.*)\.jar")


@dataclass(frozen=True, slots=True)
class SparkHome:
    """A Spark installation: its folder and its version, as ``4.3.0``."""

    path: Path
    version: str

    @property
    def jars(self) -> Path:
        """The folder of Spark's own jars."""
        return self.path / "jars"

    @property
    def minor(self) -> str:
        """Major and minor version, as ``4.3``."""
        return ".".join(self.version.split(".")[:2])


def spark_home(path: Path | None = None) -> SparkHome:
    """The Spark in ``path``, else in ``SPARK_HOME``, else the installed pyspark.

    Raises:
        MissingDependencyError: there is no Spark.
    """
    folder = path or _configured_home()
    for jar in sorted((folder / "jars").glob("spark-core_*.jar")):
        if match := _CORE_JAR.fullmatch(jar.name):
            return SparkHome(folder, match["version"])
    raise MissingDependencyError(
        f"{folder} holds no Spark: there is no jars/spark-core_*.jar",
        hint="point SPARK_HOME at a Spark installation, or unset it to use the pyspark package",
    )


def bridge_jar(spark: SparkHome | None = None) -> Path:
    """The path of the jar to put on Spark's class path (``spark.jars``).

    Raises:
        MissingDependencyError: there is no Spark, or this installation has neither jar nor sources.
        UnsupportedError: a Spark version the bridge is not made for.
        JavaError: the jar has to be compiled and there is no JDK, or javac failed.
    """
    spark = spark or spark_home()
    if spark.minor not in SUPPORTED:
        raise UnsupportedError(
            f"icecomb's bridge does not run on Spark {spark.version} ({spark.path})",
            hint=f"install Spark {' or '.join(SUPPORTED)}: pip install 'icecomb[spark]'",
        )
    ready = ready_made(spark.minor)
    return ready if ready.is_file() else compile_bridge(spark)


def ready_made(minor: str) -> Path:
    """Where a wheel carries the jar for a Spark minor version."""
    return _HERE / "jars" / f"icecomb-spark-{minor}.jar"


def sources() -> list[Path]:
    """The Java sources of the bridge, in a checkout; empty in an install without them."""
    return sorted((_HERE / "bridge").rglob("*.java"))


def compile_bridge(spark: SparkHome) -> Path:
    """Compile the bridge against ``spark``'s jars, or find it in the cache."""
    from icecomb.catalog.java import compile_jar

    found = sources()
    if not found:
        raise MissingDependencyError(
            f"icecomb is installed without a bridge for Spark {spark.minor} and its sources",
            hint="reinstall it from a wheel: pip install --force-reinstall 'icecomb[spark]'",
        )
    return compile_jar(
        sources=found,
        classpath=f"{spark.jars}{os.sep}*",
        name=f"icecomb-spark-{spark.minor}",
        key=_key(spark, found),
    )


def _key(spark: SparkHome, found: list[Path]) -> str:
    digest = hashlib.sha256()
    for source in found:
        digest.update(str(source.relative_to(_HERE)).encode())
        digest.update(source.read_bytes())
    return f"{spark.version}-{digest.hexdigest()[:16]}"


def _configured_home() -> Path:
    if configured := os.environ.get("SPARK_HOME"):
        return Path(configured)
    package = importlib.util.find_spec("pyspark")
    if package is None or not package.submodule_search_locations:
        raise MissingDependencyError(
            "Spark SQL needs pyspark, which is not installed",
            hint="pip install 'icecomb[spark]'",
        )
    return Path(next(iter(package.submodule_search_locations)))
