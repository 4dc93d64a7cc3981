"""The build backend of pyproject.toml: setuptools, with the jars that every wheel must contain.

The jars are compiled from the local sources for every supported Spark, and packed from a copy of
the tree: the wheel contains nothing left behind by an earlier build, and the tree stays unchanged,
so that no ready-made jar can hide sources that changed later. The same sources and compilers give
the same wheel, byte by byte.

An editable install is that of setuptools, which finds the folders by an import hook, and beside it
the path of a link to this tree: editors and type checkers run no hooks, and find `icecomb` there.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from setuptools import build_meta
from setuptools.build_meta import (
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

_EPOCH_S: Final = 315_532_800
"""The first second that an archive can tell, 1980."""

Settings = Mapping[str, Any] | None
"""The front end's settings, of wheels.

* `spark`: one or several Spark folders to compile against.
* `jars`: `first-use` for a wheel without jars, which are compiled where they are first used.
"""


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """List what a wheel's build needs besides setuptools: a Spark, and icecomb's own imports."""
    if not _with_jars(config_settings):
        return []
    return ["filelock>=3.20.3", "platformdirs>=4.0", "pyspark>=4.3,<4.4"]


def build_editable(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Build setuptools' editable wheel, and add the path that editors need (PEP 660)."""
    name: str = build_meta.build_editable(
        wheel_directory, dict(config_settings or {}), metadata_directory
    )
    _add_path(Path(wheel_directory) / name, _import_root())
    return name


def _import_root() -> Path:
    """Make the folder in which this tree is called `icecomb`, where there is none."""
    link = _TREE / "build" / "typing" / "icecomb"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to("../..")
    return link.parent


def _add_path(wheel: Path, folder: Path) -> None:
    """Add a `.pth` file with this folder to a wheel."""
    content = f"{folder}\n".encode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    with zipfile.ZipFile(wheel) as archive:
        files = {info.filename: archive.read(info) for info in archive.infolist()}
    (record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
    files["icecomb.pth"] = content
    files[record] += f"icecomb.pth,sha256={digest},{len(content)}\n".encode()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)


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
        if _with_jars(config_settings):
            _add_jars(copy, _given(config_settings))
        _make_alike(copy)
        before, mask = Path.cwd(), os.umask(0o022)
        os.chdir(copy)
        # what setuptools writes itself has this time
        os.environ.setdefault("SOURCE_DATE_EPOCH", str(_EPOCH_S))
        try:
            name: str = build_meta.build_wheel(str(target))
        finally:
            os.chdir(before)
            os.umask(mask)
        return name


def _make_alike(copy: Path) -> None:
    """Give files the rights and the time that they have on every machine."""
    for path in copy.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (_EPOCH_S, _EPOCH_S))


def _with_jars(settings: Settings) -> bool:
    """Whether a wheel shall contain its jars; refuses settings that there are not."""
    given = settings or {}
    if unknown := sorted(set(given) - {"spark", "jars"}):
        raise ValueError(f"there are the settings spark and jars, not {', '.join(unknown)}")
    if given.get("jars", "first-use") != "first-use":
        raise ValueError(f"jars can be first-use, not {given['jars']}; without it all are compiled")
    if len(given) > 1:
        raise ValueError("jars=first-use compiles nothing: leave spark=FOLDER out")
    return "jars" not in given


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
