"""The build backend of pyproject.toml: setuptools, with the jars that every wheel must contain.

The jars are compiled from the local sources for every supported Spark, and packed from a copy of
the tree: the wheel contains nothing left behind by an earlier build, and the tree stays unchanged,
so that no ready-made jar can hide sources that changed later.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_TREE: Final = Path(__file__).resolve().parent.parent.parent
_PARTS: Final = (
    *("catalog", "format", "spark"),
    *("__init__.py", "py.typed", "pyproject.toml", "setup.cfg", "README.md", "LICENSE"),
)

Settings = Mapping[str, Any] | None
"""The front end's settings: `spark`, one or several Spark folders to compile against."""


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """List what a wheel's build needs besides setuptools: a Spark, and icecomb's own imports."""
    del config_settings
    return ["filelock>=3.12", "platformdirs>=4.0", "pyspark>=4.3,<4.4"]


def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Build the wheel with all its jars (PEP 517)."""
    del metadata_directory
    target = Path(wheel_directory).absolute()
    with tempfile.TemporaryDirectory(prefix="icecomb-wheel-") as scratch, _own_modules(scratch):
        copy = Path(scratch) / "tree"
        _copy_tree(copy)
        _add_jars(copy, _given(config_settings))
        before = Path.cwd()
        os.chdir(copy)
        try:
            name: str = build_meta.build_wheel(str(target))
        finally:
            os.chdir(before)
        return name


def _given(settings: Settings) -> list[Path]:
    value = (settings or {}).get("spark", [])
    return [Path(each) for each in ([value] if isinstance(value, str) else value)]


@contextmanager
def _own_modules(scratch: str) -> Iterator[None]:
    """Make `icecomb` importable from this tree, which is not installed."""
    root = Path(scratch) / "path"
    root.mkdir()
    (root / "icecomb").symlink_to(_TREE)
    sys.path.insert(0, str(root))
    try:
        yield
    finally:
        sys.path.remove(str(root))


def _copy_tree(copy: Path) -> None:
    copy.mkdir()
    left_out = shutil.ignore_patterns("__pycache__", "*.jar", "*.class")
    for name in _PARTS:
        source = _TREE / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=left_out)
        else:
            shutil.copy2(source, copy / name)


def _add_jars(copy: Path, given: list[Path]) -> None:
    from icecomb.catalog.metastore import server_jar
    from icecomb.spark import jar
    from icecomb.spark.packaging.spark_classes import every_spark

    for floor in ("catalog", "spark"):
        (copy / floor / "jars").mkdir()
    shutil.copyfile(
        server_jar.starter_jar(server_jar.pyspark_jars()),
        copy / "catalog" / "jars" / f"{server_jar.NAME}.jar",
    )
    installed = jar.spark_home(server_jar.pyspark_jars().parent)
    for spark in every_spark([*map(jar.spark_home, given), installed]):
        ready = jar.ready_made(spark.minor, spark.scala)
        shutil.copyfile(jar.compile_bridge(spark), copy / "spark" / "jars" / ready.name)
