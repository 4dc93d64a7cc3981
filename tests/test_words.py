"""Docstrings, comments and messages keep to the words of CONTRIBUTING.md."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
_LISTED = re.search(
    r"^## Words\n(.*?)^## ", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL
)
_ROWS = re.findall(r"^\| (.*?) \| (.*?) \|$", _LISTED[1] if _LISTED else "", re.MULTILINE)[2:]
NOT = {word: better for better, words in _ROWS for word in re.findall(r"`(.*?)`", words)}
FILES = sorted(
    path
    for floor in ("format", "catalog", "spark")
    for path in (ROOT / floor).rglob("*")
    if path.suffix in {".py", ".pyi", ".java", ".scala"}
)
_NOT_WORDS = re.compile(r"``.*?``|`.*?`|^ *\w+: ", re.DOTALL | re.MULTILINE)


def pattern(word: str) -> re.Pattern[str]:
    """Return what finds a word; «there is no table» and «is no longer» are English."""
    if word == "is no":
        return re.compile(
            r"(?<![Tt]here )\b(?:is|are|was|were) no (?!longer|more|later|older)[a-z]"
        )
    return re.compile(rf"\b{re.escape(word)}\b")


@cache
def texts(path: Path) -> list[tuple[int, str]]:
    """Return line and text of a file's comments, docstrings and messages, without code."""
    return [(line, _NOT_WORDS.sub("", text)) for line, text in prose(path)]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Return line and text of each comment, docstring and message of a file."""
    text = path.read_text()
    if path.suffix in {".java", ".scala"}:
        for found in re.finditer(
            r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)* (?:[^\"\\\n]|\\.)*\"", text, re.DOTALL
        ):
            yield text.count("\n", 0, found.start()) + 1, found[0]
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


@pytest.mark.parametrize("word", NOT)
def test_a_word_that_others_would_have_to_learn_is_in_no_file(word: str) -> None:
    wanted = pattern(word)
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.strip()[:100]!r}"
        for path in FILES
        for line, text in texts(path)
        if wanted.search(text)
    ]
    assert found == [], f"write: {NOT[word]}"


def test_the_list_is_read() -> None:
    assert {"of now", "made anew", "is no"} <= NOT.keys()
    assert pattern("is no").search("it is no table")
    assert not pattern("is no").search("there is no table, and it is no longer needed")
