"""Builds the wheel that carries its jars: `python -m icecomb.spark.wheel dist/`.

Needs a checkout and a JDK. The jars are compiled from this checkout and put into a copy of it; the
checkout itself stays as it is, so that no stale ready-made jar can hide sources that changed later.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from icecomb.catalog.metastore import server_jar
from icecomb.format.errors import ConfigurationError, IcecombError
from icecomb.spark import jar

_CHECKOUT: Final = Path(__file__).resolve().parent.parent
_PARTS: Final = (
    "catalog",
    "format",
    "spark",
    "pyproject.toml",
    "setup.cfg",
    "README.md",
    "LICENSE",
)
_SETUPTOOLS: Final = 77
"""The oldest setuptools that knows the licence fields of pyproject.toml."""


def build_wheel(target: Path) -> Path:
    """Build the wheel into the folder `target` and return its path.

    Raises:
        ConfigurationError: This is not a checkout, or pip failed.
        JavaError: There is no JDK, or javac refused the sources.
        MissingDependencyError: pyspark, whose jars the classes are compiled against, is not
            installed.
    """
    if not (_CHECKOUT / "pyproject.toml").is_file():
        raise ConfigurationError(
            f"{_CHECKOUT} is not a checkout of icecomb",
            hint="clone the repository and run it there",
        )
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="icecomb-wheel-") as scratch:
        copy = Path(scratch) / "icecomb"
        _copy_checkout(copy)
        _add_jars(copy)
        out = Path(scratch) / "out"
        _pip_wheel(copy, out)
        (built,) = out.glob("*.whl")
        return Path(shutil.move(built, target / built.name))


def _copy_checkout(copy: Path) -> None:
    copy.mkdir()
    for name in _PARTS:
        source = _CHECKOUT / name
        if source.is_dir():
            shutil.copytree(
                source,
                copy / name,
                ignore=shutil.ignore_patterns("__pycache__", "*.jar", "*.class"),
            )
        else:
            shutil.copy2(source, copy / name)


def _add_jars(copy: Path) -> None:
    spark = jar.spark_home()
    bridge = jar.compile_bridge(spark)
    starter = server_jar.starter_jar(spark.jars)
    for built, folder, name in (
        (bridge, "spark", jar.ready_made(spark.minor, spark.scala).name),
        (starter, "catalog", f"{server_jar.NAME}.jar"),
    ):
        (copy / folder / "jars").mkdir()
        shutil.copyfile(built, copy / folder / "jars" / name)


def _pip_wheel(copy: Path, out: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--quiet",
        "-w",
        str(out),
        str(copy),
    ]
    if _has_setuptools():
        command.insert(4, "--no-build-isolation")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConfigurationError(
            f"pip could not build the wheel:\n{done.stderr[-2000:].strip()}",
            hint=(
                "look at pip's last lines above; it needs setuptools and the jars that were built"
            ),
        )


def _has_setuptools() -> bool:
    try:
        return int(importlib.metadata.version("setuptools").split(".")[0]) >= _SETUPTOOLS
    except importlib.metadata.PackageNotFoundError:
        return False


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m icecomb.spark.wheel", description="Build the wheel that carries its jars."
    )
    parser.add_argument("folder", nargs="?", default="dist", type=Path)
    try:
        built = build_wheel(parser.parse_args().folder)
    except IcecombError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.write(f"{built}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
