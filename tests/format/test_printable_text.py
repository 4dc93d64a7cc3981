"""Logs and reprs: what terminals would obey is shown escaped."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.printable_text import (
    PrintableFormatter,
    logged_to,
    printable,
    printable_lines,
)

ATTACK = "a\x1b]0;owned\x07\x9b31m\u202eb\rc\nd"
SHOWN = r"a\x1b]0;owned\x07\x9b31m\u202eb\rc"


def test_a_text_is_one_line_or_keeps_its_lines() -> None:
    assert printable(ATTACK) == SHOWN + r"\nd"
    assert printable_lines(ATTACK) == SHOWN + "\nd"
    assert printable_lines("東京 👩\u200d💻\nx") == "東京 👩\u200d💻\nx"


def test_a_record_is_a_line_and_so_is_each_of_its_traceback() -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(PrintableFormatter("%(levelname)s %(message)s"))
    info = (ValueError, ValueError(ATTACK), None)
    handler.emit(logging.LogRecord("x", 30, "p", 1, "see %s", (ATTACK,), info, sinfo=ATTACK))
    lines = out.getvalue().split("\n")
    assert lines[0] == rf"WARNING see {SHOWN}\nd"
    assert f"ValueError: {SHOWN}" in lines
    assert all(line.isprintable() for line in lines)


def test_warnings_go_to_a_stream_unless_a_program_has_handlers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, root = logging.getLogger("icecomb.x"), logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    with logged_to(out := io.StringIO()):
        log.warning(ATTACK)
    assert out.getvalue() == rf"{SHOWN}\nd" + "\n"
    monkeypatch.setattr(root, "handlers", [logging.NullHandler()])
    with logged_to(out := io.StringIO()):
        log.warning(ATTACK)
    assert out.getvalue() == ""


def test_what_python_shows_of_a_table_and_a_scan_is_printable(tmp_path: Path) -> None:
    allowed = {"own-folders.allowed-prefixes": "/"}
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path), **allowed)
    lake.create_namespace("db")
    rows = pa.table({ATTACK: [1]})
    table = lake.create_table("db.t", rows.schema, properties={"write.data.path": f"/{ATTACK}"})
    for shown in (repr(table), repr(table.scan()), repr(table.schema())):
        assert "owned" in shown
        assert all(line.isprintable() for line in shown.split("\n"))
