"""Classes of Sparks that are not installed, to compile against, fetched by pyspark's Ivy.

They are cached per user, and used only if they are the files that `jars.sha256` names: a mirror, or
a proxy between, may answer with others.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from icecomb.catalog.java import find_java, java_environment, private_cache
from icecomb.catalog.metastore.server_jar import pyspark_jars
from icecomb.format.errors import MissingDependencyError
from icecomb.spark.jar import SUPPORTED, SparkHome

CHECKSUMS: Final = Path(__file__).with_name("jars.sha256")
"""As ``sha256sum`` prints them."""
_RELEASES: Final = {
    "3.5": ("3.5.8", "3.3.4", "1.13.1", "1.9.8", "1.11.5", "12.0.1", "2.15.2", "2.15.2"),
    "4.0": ("4.0.2", "3.4.1", "1.15.2", "2.1.4", "1.12.0", "18.1.0", "2.18.2", "2.18.2"),
    "4.1": ("4.1.1", "3.4.2", "1.16.0", "2.2.1", "1.12.1", "18.3.0", "2.20", "2.20.0"),
    "4.2": ("4.2.0", "3.5.0", "1.17.0", "2.3.0", "1.12.1", "19.0.0", "2.21", "2.21.2"),
    "4.3": ("4.3.0", "3.5.0", "1.17.0", "2.3.0", "1.12.1", "19.0.0", "2.21", "2.21.2"),
}
"""By minor version: Spark, its Hadoop, Parquet, ORC, Avro, Arrow, Jackson's annotations, its rest.

They are listed one by one, because resolving all of Spark's dependencies takes twice as long.
"""
_SKETCHES: Final = {"3.5": ("3.3.0", "2.1.0"), "4.0": ("6.1.1", "3.0.2")}
"""By minor version: the library of sketches, and of its memory; newer Sparks have those below."""
_NEWER_SKETCHES: Final = ("6.2.0", "3.0.2")

_SCALA: Final = {"2.12": "2.12.18", "2.13": "2.13.8"}
_OF_SPARK: Final = "catalyst common-utils core launcher network-common sql sql-api tags unsafe"
_MODULE: Final = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="icecomb" module="classes-of-spark"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
_DEPENDENCY: Final = """\
    <dependency org="{0}" name="{1}" rev="{2}" transitive="false">
      <artifact name="{1}" type="jar" ext="jar"{3}/>
    </dependency>"""


def every_spark(installed: Sequence[SparkHome] = ()) -> list[SparkHome]:
    """Return one Spark for each jar that a wheel carries.

    Args:
        installed: Spark installations to use if their minor version and Scala version match.
    """
    known = {(spark.minor, spark.scala): spark for spark in reversed(installed)}
    return [
        known.get((minor, scala)) or spark_classes(minor, scala)
        for minor, scalas in SUPPORTED.items()
        for scala in scalas
    ]


def spark_classes(minor: str, scala: str) -> SparkHome:
    """Return a Spark's classes, enough to compile against but not to run.

    Args:
        minor: Spark's minor version, as ``3.5``.
        scala: Scala's version, as ``2.12``.
    """
    from filelock import FileLock

    cache = private_cache("spark")
    version = _RELEASES[minor][0]
    home = cache / f"{version}_{scala}"
    home.mkdir(parents=True, exist_ok=True)
    # Ivy does not lock its cache
    with FileLock(cache / ".lock"):
        module, wanted = home / "ivy.xml", _module(minor, scala)
        if not module.exists() or module.read_text() != wanted:
            draft = home / "draft.xml"
            draft.write_text(wanted)
            _retrieve(draft, home / "jars", cache / "ivy")
            check_jars(home / "jars")
            draft.replace(module)
    return SparkHome(home, version, scala)


def check_jars(folder: Path) -> None:
    """Check that the jars in a folder are those that `jars.sha256` names."""
    check_files(sorted(folder.glob("*.jar")), CHECKSUMS, folder.parent.parent)


def check_files(files: Iterable[Path], checksums: Path, kept: Path) -> None:
    """Check that fetched files, which are kept in a folder, are those that a list names."""
    lines = checksums.read_text().splitlines()
    known = {name: checksum for checksum, name in map(str.split, lines)}
    for file in files:
        found = hashlib.sha256(file.read_bytes()).hexdigest()
        if found != known.get(file.name):
            raise MissingDependencyError(
                f"{file} is not the file that icecomb was made with: its SHA-256 is {found}, not "
                f"{known.get(file.name)}",
                hint=f"Find out which mirror or proxy answers with it; then delete {kept}.",
            )


def _module(minor: str, scala: str) -> str:
    spark, hadoop, parquet, orc, avro, arrow, annotations, jackson = _RELEASES[minor]
    of_spark = _OF_SPARK.split()
    if minor not in {"3.5", "4.0"}:
        of_spark.append("common-utils-java")
    sketches, memory = _SKETCHES.get(minor, _NEWER_SKETCHES)
    shaded = ' m:classifier="shaded-protobuf"'
    wanted = [
        *(("org.apache.spark", f"spark-{name}_{scala}", spark, "") for name in of_spark),
        ("org.scala-lang", "scala-library", _SCALA[scala], ""),
        ("com.esotericsoftware", "kryo-shaded", "4.0.2", ""),
        ("org.apache.hadoop", "hadoop-client-api", hadoop, ""),
        *(
            ("org.apache.parquet", f"parquet-{name}", parquet, "")
            for name in ("column", "common", "format-structures", "hadoop")
        ),
        ("org.apache.orc", "orc-core", orc, shaded),
        ("org.apache.orc", "orc-mapreduce", orc, shaded),
        ("org.apache.hive", "hive-storage-api", "2.8.1", ""),
        ("org.apache.avro", "avro", avro, ""),
        ("org.apache.avro", "avro-mapred", avro, ""),
        ("org.apache.arrow", "arrow-vector", arrow, ""),
        ("org.apache.arrow", "arrow-memory-core", arrow, ""),
        ("org.roaringbitmap", "RoaringBitmap", "0.9.45", ""),
        ("org.apache.datasketches", "datasketches-java", sketches, ""),
        ("org.apache.datasketches", "datasketches-memory", memory, ""),
        ("org.slf4j", "slf4j-api", "2.0.7", ""),
        ("com.fasterxml.jackson.core", "jackson-annotations", annotations, ""),
        ("com.fasterxml.jackson.core", "jackson-core", jackson, ""),
        ("com.fasterxml.jackson.core", "jackson-databind", jackson, ""),
    ]
    return _MODULE.format(dependencies="\n".join(_DEPENDENCY.format(*each) for each in wanted))


def _retrieve(module: Path, folder: Path, cache: Path) -> None:
    ivy = next(pyspark_jars().glob("ivy-*.jar"))
    command = [
        *(str(find_java()), "-jar", str(ivy), "-ivy", str(module), "-cache", str(cache)),
        *("-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]", "-symlink"),
        *("-types", "jar", "bundle"),
    ]
    # a repository that did not answer may answer the next time
    for _ in range(3):
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env=java_environment()
        )
        if done.returncode == 0:
            return
    said = done.stdout[-1500:].strip()
    raise MissingDependencyError(
        f"Ivy could not fetch the classes of Spark {module.parent.name}:\n{said}",
        hint="Check that Maven Central, or the mirror of ~/.ivy2, can be reached from here.",
    )
