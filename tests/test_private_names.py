"""Tests break in at public names: what a private one does may change without a test that fails."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
PATCHED = {
    ("format/manifests/test_joined_columns.py", "_columns"): (
        "no writer of ours makes manifests of such types, or with such a null"
    ),
    ("format/test_holding.py", "_releases"): (
        "as an interrupt between two lines, of which no trace function knows"
    ),
    ("spark/test_application.py", "_check_running"): (
        "the Spark of other tests may run in this process"
    ),
}
"""Private names that tests replace, by the file, and why none is public that would do."""
_PATCHES = {"setattr", "delattr", "patch", "object"}


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ('monkeypatch.setattr(module, "_name", 1)', ["_name"]),
        ('monkeypatch.setattr("a._b.c", 1)', ["a._b.c"]),
        ('mock.patch.object(\n    Thing,\n    "_name",\n)', ["_name"]),
        ('mock.patch("a.b._c")', ["a.b._c"]),
        ("thing._name = 1", ["_name"]),
        ("thing.inner._name += 1", ["_name"]),
        ("del thing._name", ["_name"]),
        ("self._name = 1", []),
        ('monkeypatch.setattr(module, "NAME", 1)', []),
        ('monkeypatch.setattr(module, "__version__", 1)', []),
    ],
)
def test_it_is_found_that_a_private_name_is_replaced(code: str, names: list[str]) -> None:
    assert list(_replaced(ast.parse(code))) == names


def test_tests_replace_no_private_name_but_those_listed() -> None:
    found = {
        (str(path.relative_to(TESTS)), name)
        for path in TESTS.rglob("*.py")
        for name in _replaced(ast.parse(path.read_text()))
    }
    assert found == PATCHED.keys()


def _replaced(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
            given = [one.value for one in node.args[:2] if isinstance(one, ast.Constant)]
            if name in _PATCHES:
                yield from (one for one in given if isinstance(one, str) and _is_private(one))
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
            if not own and _is_private(node.attr):
                yield node.attr


def _is_private(name: str) -> bool:
    return any(part[:1] == "_" and part[:2] != "__" for part in name.split("."))
