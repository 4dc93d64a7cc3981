"""The bridge's jar for the Spark at hand: ready-made in a wheel, compiled once from a checkout.

A wheel carries one jar for each Spark minor version and Scala version, so its users need a Java
runtime and no compiler. A checkout carries the Java sources: at first use they are compiled with
the JDK against the jars of the Spark in use, and cached per user, Spark version and source hash.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from icecomb.format.errors import JavaError, MissingDependencyError, UnsupportedError

SUPPORTED: Final = {
    "3.5": ("2.12", "2.13"),
    "4.0": ("2.13",),
    "4.1": ("2.13",),
    "4.2": ("2.13",),
    "4.3": ("2.13",),
}
"""Spark minor versions for which the bridge is compiled and tested, with their Scala versions."""

HERE: Final = Path(__file__).resolve().parent
_CORE_JAR: Final = re.compile(r"spark-core_(?P<scala>[0-9.]+)-(?P<version>\d+\.\d+\.\d+.*)\.jar")


@dataclass(frozen=True, slots=True)
class SparkHome:
    """A Spark installation: its folder, its version, as ``4.3.0``, and its Scala's, as ``2.13``."""

    path: Path
    version: str
    scala: str

    @property
    def jars(self) -> Path:
        """The folder of Spark's own jars."""
        return self.path / "jars"

    @property
    def minor(self) -> str:
        """Major and minor version, as ``4.3``."""
        return ".".join(self.version.split(".")[:2])


def spark_home(path: Path | None = None) -> SparkHome:
    """Find Spark: in ``path``, ``SPARK_HOME``, the installed pyspark, or by ``spark-submit``.

    The last is the installation to which ``spark-submit`` on ``PATH`` belongs, links resolved.
    """
    folder = path or _configured_home()
    for jar in sorted((folder / "jars").glob("spark-core_*.jar")):
        if match := _CORE_JAR.fullmatch(jar.name):
            return SparkHome(folder, match["version"], match["scala"])
    raise MissingDependencyError(
        f"{folder} holds no Spark: there is no jars/spark-core_*.jar",
        hint="Point SPARK_HOME at a Spark installation, or unset it to use the pyspark package.",
    )


def bridge_jar(spark: SparkHome | None = None) -> Path:
    """Return the path of the jar to put on Spark's class path (``spark.jars``)."""
    spark = spark or spark_home()
    _check_supported(spark)
    _check_java(spark)
    ready = ready_made(spark.minor, spark.scala)
    return ready if ready.is_file() else compile_bridge(spark)


def ready_made(minor: str, scala: str) -> Path:
    """Return the path of a wheel's jar for a Spark minor version and Scala version."""
    return HERE / "jars" / f"{_name(minor, scala)}.jar"


def sources(minor: str) -> list[Path]:
    """List the bridge's Java sources for a Spark minor version; none if not installed.

    `bridge/java` is for all versions. Classes that differ by version are in `v35`, and again in
    `v40`, ... where they changed: a class comes from the newest folder not newer than Spark.
    """
    bridge = HERE / "bridge"
    found = {path.relative_to(bridge / "java"): path for path in (bridge / "java").rglob("*.java")}
    since = {f"v{each.replace('.', '')}": _number(each) for each in SUPPORTED}
    for folder, version in since.items():
        if version <= _number(minor):
            found |= {
                path.relative_to(bridge / folder): path
                for path in (bridge / folder).rglob("*.java")
            }
    return sorted(found.values())


def compile_bridge(spark: SparkHome) -> Path:
    """Compile the bridge against ``spark``'s jars, or take it from the cache."""
    from icecomb.catalog.java import compile_jar
    from icecomb.spark.records import protocol_java

    found = sources(spark.minor)
    if not found:
        raise MissingDependencyError(
            f"icecomb is installed without a bridge for Spark {spark.minor} and its sources",
            hint="Reinstall it from a wheel: pip install --force-reinstall 'icecomb[spark]'",
        )
    protocol = protocol_java()
    with tempfile.TemporaryDirectory(prefix="icecomb-protocol-") as scratch:
        written = Path(scratch) / "Protocol.java"
        written.write_text(protocol, "utf-8")
        return compile_jar(
            sources=[*found, written],
            classpath=f"{spark.jars}{os.sep}*",
            name=_name(spark.minor, spark.scala),
            key=_key(spark, found, protocol),
        )


def _check_supported(spark: SparkHome) -> None:
    if spark.scala in SUPPORTED.get(spark.minor, ()):
        return
    found = f"Spark {spark.version} for Scala {spark.scala} ({spark.path})"
    known = ", ".join(SUPPORTED)
    if _number(spark.minor) > max(map(_number, SUPPORTED)):
        raise UnsupportedError(
            f"{found} is newer than this icecomb, which knows Spark {known}",
            hint="Upgrade icecomb, or use a Spark that it knows: pip install 'icecomb[spark]'",
        )
    raise UnsupportedError(
        f"icecomb's bridge does not run on {found}",
        hint=f"Use Spark {known}: pip install 'icecomb[spark]'",
    )


def _check_java(spark: SparkHome) -> None:
    """Check Java's version: Spark 3.5 starts on 8 and 11, and would fail without a remedy."""
    from icecomb.catalog.java import MINIMUM_VERSION, find_java, java_version

    try:
        java = find_java()
        version = java_version(java)
    except JavaError:
        # Spark may run on another host
        return
    if version < MINIMUM_VERSION:
        raise JavaError(
            f"{java} is Java {version}: icecomb's jar for Spark {spark.version} needs Java "
            f"{MINIMUM_VERSION} or later, on the driver and on the executors",
            hint="Set JAVA_HOME, spark.executorEnv.JAVA_HOME and, on YARN, "
            "spark.yarn.appMasterEnv.JAVA_HOME to a Java 17.",
        )


def _number(minor: str) -> tuple[int, ...]:
    return tuple(int(part) for part in minor.split("."))


def _name(minor: str, scala: str) -> str:
    return f"icecomb-spark-{minor}_{scala}"


def _key(spark: SparkHome, found: list[Path], protocol: str) -> str:
    digest = hashlib.sha256(protocol.encode())
    for source in found:
        digest.update(str(source.relative_to(HERE)).encode())
        digest.update(source.read_bytes())
    return f"{spark.version}-{digest.hexdigest()[:16]}"


def _configured_home() -> Path:
    if configured := os.environ.get("SPARK_HOME"):
        return Path(configured)
    package = importlib.util.find_spec("pyspark")
    if package is not None and package.submodule_search_locations:
        return Path(next(iter(package.submodule_search_locations)))
    if submit := shutil.which("spark-submit"):
        home = Path(submit).resolve().parent.parent
        if (home / "jars").is_dir():
            return home
    raise MissingDependencyError(
        "There is no Spark: SPARK_HOME is not set, and pyspark is not installed",
        hint="Set SPARK_HOME to the cluster's Spark, or pip install 'icecomb[spark]'",
    )
