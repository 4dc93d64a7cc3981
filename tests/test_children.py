"""Programs that icecomb runs get no secret on their command line, and none in their environment."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from icecomb.catalog.java import compile_jar, java_version
from icecomb.format.errors import IcecombError
from icecomb.spark.packaging.spark_classes import spark_classes
from icecomb.spark.wheel import build_wheel
from tests.environments import ROOT
from tests.secret_settings import VARIABLES, leaks, marker

STARTS = ("run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput")
ANY = ("system", "popen", "fork", "spawn", "exec", "posix_spawn", "create_subprocess")
"""Beginnings of other functions that start programs: the product has none."""
_LIKELY = re.compile(rf"subprocess|\b(os|asyncio|pty)\.({'|'.join(ANY)})")
FAKE = """#!/bin/sh
{{ echo "program $0 $*"; env; }} >> '{record}'
case "$*" in *-version*) echo 'openjdk version "17.0.1"' >&2; exit 0;; esac
exit 1
"""
"""A program that keeps how it was started."""


def _started(path: Path) -> Iterator[tuple[str, ast.Call]]:
    text = path.read_text()
    if not _LIKELY.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = getattr(node.func.value, "id", "")
            if of in {"os", "asyncio", "pty"} and node.func.attr.startswith(ANY):
                yield f"{path.relative_to(ROOT)}:{node.lineno} {of}.{node.func.attr}", node
            elif of == "subprocess" and node.func.attr in STARTS:
                yield f"{path.relative_to(ROOT)}:{node.lineno} subprocess", node


def test_every_child_is_given_an_environment_of_its_own() -> None:
    paths = [
        path for floor in ("format", "catalog", "spark") for path in (ROOT / floor).rglob("*.py")
    ]
    children = [each for path in paths for each in _started(path)]
    assert len(children) >= 7
    for where, call in children:
        given = {each.arg: ast.unparse(each.value) for each in call.keywords}
        assert given.get("env", "").startswith("java_environment("), where


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which programs say how they were started, while all secrets are set."""
    programs, record = tmp_path / "bin", tmp_path / "record"
    programs.mkdir()
    for name in ("java", "javac", "python"):
        (programs / name).write_text(FAKE.format(record=record))
        (programs / name).chmod(0o755)
    for name in VARIABLES:
        monkeypatch.setenv(name, marker(name))
    monkeypatch.setenv("ICECOMB_CATALOG__LAKE__S3__SECRET_ACCESS_KEY", marker("of a catalog"))
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid:1")
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.invalid/simple")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    return record


CHILDREN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "java -version": ("java -version", lambda folder: java_version(folder / "bin" / "java")),
    "javac": ("javac --release", lambda folder: compile_jar([folder / "X.java"], "", "x", "1")),
    "Ivy": ("java -jar", lambda _: spark_classes("3.5", "2.12")),
    "pip": ("python -I -m pip", lambda folder: build_wheel(folder / "dist")),
}


@pytest.mark.parametrize("name", CHILDREN)
def test_a_child_gets_no_secret(name: str, record: Path, tmp_path: Path) -> None:
    words, start = CHILDREN[name]
    with suppress(IcecombError):
        start(tmp_path)
    told = record.read_text()
    assert words in told
    assert "\nPATH=" in told
    assert list(leaks(told)) == []


def test_pip_is_told_where_packages_are(record: Path, tmp_path: Path) -> None:
    with suppress(IcecombError):
        build_wheel(tmp_path / "dist")
    told = record.read_text().splitlines()
    assert {"HTTPS_PROXY=http://proxy.invalid:1", "PIP_INDEX_URL=http://index.invalid/simple"} <= {
        *told
    }
