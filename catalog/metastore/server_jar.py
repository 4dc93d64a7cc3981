"""The classes of the embedded metastore: pyspark's jars and a small starter class beside them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from pathlib import Path
from typing import Final

from icecomb.catalog.java import compile_jar
from icecomb.format.errors import JavaError, MissingDependencyError

NAME: Final = "icecomb-metastore"
_HERE: Final = Path(__file__).resolve().parent


def pyspark_jars() -> Path:
    """Find the folder of the installed pyspark's jars, without importing it."""
    package = importlib.util.find_spec("pyspark")
    if package is None or not package.submodule_search_locations:
        raise MissingDependencyError(
            "The embedded metastore runs from pyspark's jars, and pyspark is not installed",
            hint="pip install 'icecomb[spark]', or name the metastore you have (uri=thrift://...)",
        )
    return Path(next(iter(package.submodule_search_locations))) / "jars"


def class_path() -> str:
    """Return the Java class path of the embedded metastore."""
    jars = pyspark_jars()
    if not list(jars.glob("hive-metastore-2.3.*.jar")):
        raise MissingDependencyError(
            f"{jars} has no hive-metastore 2.3 jar", hint="pip install 'icecomb[spark]'"
        )
    return f"{starter_jar(jars)}{os.pathsep}{jars}{os.sep}*"


def starter_jar(jars: Path) -> Path:
    """Return `icecomb.EmbeddedMetastore`'s jar: ready-made in a wheel, else compiled and cached."""
    ready = _HERE.parent / "jars" / f"{NAME}.jar"
    if ready.is_file():
        return ready
    sources = sorted((_HERE / "java").rglob("*.java"))
    if not sources:
        raise JavaError(
            f"This installation of icecomb has neither {NAME}.jar nor its sources",
            hint="Reinstall it: pip install --force-reinstall icecomb",
        )
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    return compile_jar(
        sources=sources,
        classpath=f"{jars}{os.sep}*",
        name=NAME,
        key=digest.hexdigest()[:16],
    )


def derby_key() -> str:
    """Return a key that distinguishes databases prepared by different Hive or Derby versions."""
    names = sorted(
        path.stem
        for pattern in ("hive-metastore-*.jar", "derby-*.jar", "datanucleus-*.jar")
        for path in pyspark_jars().glob(pattern)
    )
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
