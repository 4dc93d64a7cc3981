"""ARCHITECTURE.md names files that there are, and its walks those that a call enters."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.table.table import Table

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
ROWS = pa.table({"id": list(range(30)), "name": [f"n{i}" for i in range(30)]})
WALKS: dict[str, Callable[[Table], Any]] = {
    "One commit": lambda table: table.append(ROWS),
    "One scan": lambda table: table.scan("id > 5").to_arrow(),
}


DECLARING = {"catalog/commit/pointer.py"}
"""Named for the values and interfaces in it, which run no code of their own."""


def files(text: str) -> list[str]:
    return re.findall(r"`([\w/*]+\.py)`", text)


def entered(call: Callable[[], Any]) -> set[str]:
    found: set[str] = set()

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and "/icecomb/" in frame.f_code.co_filename:
            found.add(frame.f_code.co_filename.rpartition("/icecomb/")[2])

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def test_each_file_it_names_is_there() -> None:
    there = [str(path.relative_to(ROOT)) for path in ROOT.glob("[cfst]*/**/*.py")]
    named = files(TEXT)
    assert len(named) > 20
    assert [n for n in named if not any(fnmatch(f"/{path}", f"*/{n}") for path in there)] == []


@pytest.mark.parametrize("walk", WALKS)
def test_its_walk_goes_where_the_call_goes(walk: str, tmp_path: Path) -> None:
    section = TEXT.partition(f"## {walk}\n")[2].partition("\n## ")[0]
    # what follows is about metastores and folders
    told = files(section.partition("On a metastore")[0])
    with load_catalog("files", type="hadoop", warehouse=f"file:{tmp_path}") as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", ROWS.schema)
        table.append(ROWS)
        found = entered(lambda: WALKS[walk](table))
    assert len(told) >= 4
    found |= DECLARING
    assert [n for n in told if not any(fnmatch(f"/{path}", f"*/{n}") for path in found)] == []
