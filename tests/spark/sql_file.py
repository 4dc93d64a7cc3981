"""Statements in plain `.sql` files, with what they must answer.

A statement ends with a semicolon at the end of a line. Under it may stand what it answers: a line `--> [1, "a", null]` for each row,
as JSON, in this order; `--> none` when there are none; or `--! text` for an error whose message the regular expression is found in.
Other comments say what it is about. The tables are in `lake.db`; `any` stands for a file format in files that are read in several.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).with_name("sql")
FILES = sorted(path.stem for path in FOLDER.glob("*.sql"))

Run = Callable[[str], list[list[Any]]]


@dataclass
class Statement:
    """One statement of a file.

    Args:
        line: Where it ends.
        text: Without the semicolon.
        rows: What it answers; None where nothing is said of that.
        error: What its error's message holds.
    """

    line: int
    text: str
    rows: list[list[Any]] | None = None
    error: str | None = None


def statements(file: str) -> list[Statement]:
    """The statements of a file, by its name without `.sql`."""
    found: list[Statement] = []
    lines: list[str] = []
    for number, line in enumerate((FOLDER / f"{file}.sql").read_text().splitlines(), 1):
        if line.startswith("-->"):
            answer = line.removeprefix("-->").strip()
            found[-1].rows = found[-1].rows or []
            if answer != "none":
                found[-1].rows.append(json.loads(answer))
        elif line.startswith("--!"):
            found[-1].error = line.removeprefix("--!").strip()
        elif not line.startswith("--"):
            lines.append(line)
            if line.endswith(";"):
                found.append(Statement(number, "\n".join(lines).strip().rstrip(";")))
                lines = []
    assert not "".join(lines).strip(), f"{file}.sql: the last statement has no semicolon"
    return found


def check(run: Run, file: str, catalog: str, namespace: str) -> None:
    """Run a file on one Spark, its tables in a namespace of their own.

    Args:
        run: Answers a statement; its error is an exception with the message.
        file: The file's name without `.sql`.
        catalog: What to put in the place of `lake`.
        namespace: What to put in the place of `db`.
    """
    run(f"CREATE NAMESPACE {catalog}.{namespace}")
    check_in(run, file, catalog, namespace)
    run(f"DROP NAMESPACE {catalog}.{namespace}")


def check_in(run: Run, file: str, catalog: str, namespace: str, file_format: str = "any") -> None:
    """Run a file on one Spark, on tables that are in a namespace already.

    Args:
        file_format: What to put in the place of `any`; the others are those of `check`.
    """
    for statement in statements(file):
        text = re.sub(r"\blake\.db", f"{catalog}.{namespace}", statement.text)
        text = re.sub(r"\blake\b", catalog, text).replace("'db_more'", f"'{namespace}_more'")
        # what was captured stands with a failure
        print(f"{file}.sql:{statement.line}: {text}")
        if statement.error is not None:
            with pytest.raises(Exception, match=statement.error):
                run(text)
            continue
        rows = run(text)
        if statement.rows is not None:
            given = json.dumps(statement.rows).replace('"any"', f'"{file_format}"')
            named = json.loads(given.replace('"db', f'"{namespace}'))
            assert rows == named, f"{text}\nanswered {rows} instead of {named}"
