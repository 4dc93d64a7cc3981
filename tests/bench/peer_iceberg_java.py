"""Iceberg Java on a plain JVM, as the benchmarks use it: a process of its own for each figure."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from icecomb.catalog.java import find_java, find_javac
from tests.bench.measure import RESULT, ROOT, Figures
from tests.peers.ivy import fetch, pyspark_jars

_RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
_SOURCES = Path(__file__).parent
_CLASSES = ROOT / "build" / "bench" / "java"


def plan(metadata: str, predicate: Sequence[tuple[str, str, Any]], plans: int) -> Figures:
    """Figures of planning a table so many times; `warm_s` is the last plan."""
    return _run("plan", metadata, plans, *(part for triple in predicate for part in triple))


def commit_files(location: Path, files: int, columns: int) -> Figures:
    """Figures of committing so many data files with metrics to a new table."""
    return _run("files", location, files, columns)


def hive_writer(*arguments: object) -> list[str]:
    """The command of a process that appends to a table of a Hive metastore; see its source."""
    return _command("HiveWriter", *arguments)


def _run(*arguments: object) -> Figures:
    command = _command("IcebergJava", *arguments)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        if line.startswith(RESULT):
            figures: Figures = json.loads(line.removeprefix(RESULT))
            return {**figures, "version": _RUNTIME.rpartition(":")[2]}
    raise SystemExit(f"Iceberg Java: {done.stderr[-2000:]}")


def _command(name: str, *arguments: object) -> list[str]:
    """The command that runs a program of this folder, compiled if need be."""
    jars = f"{fetch(_RUNTIME)}:{pyspark_jars()}/*"
    source, compiled = _SOURCES / f"{name}.java", _CLASSES / f"{name}.class"
    if not compiled.exists() or compiled.stat().st_mtime < source.stat().st_mtime:
        command = [find_javac(), "-d", _CLASSES, "-cp", jars, source]
        subprocess.run(command, check=True)
    return [str(find_java()), "-cp", f"{_CLASSES}:{jars}", name, *map(str, arguments)]
