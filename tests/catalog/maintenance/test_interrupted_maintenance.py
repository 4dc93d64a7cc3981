"""Maintenance that somebody interrupts by Ctrl-C: it ends at once, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from maintained_table import (
    data_on_disk,
    delete_by_value,
    frame,
    in_order,
    new_table,
)

from icecomb.catalog.cli.application import INTERRUPTED, run
from icecomb.format.maintenance import file_rewriter
from icecomb.format.maintenance.equality_conversion import EqualityConverter
from icecomb.format.maintenance.file_rewriter import FileRewriter
from icecomb.format.maintenance.position_deletes import PositionDeleteRewriter
from icecomb.format.rows.write import row_sort
from tests.rings import sampled

_TURNS = 600
"""So often the work repeats what it does, where nobody ends it: half a minute long."""


def endless(kind: type, name: str, begun: Callable[[], None], ended: Callable[[], None]) -> None:
    """Make a method that yields go on with what it yields; in a process of its own."""
    original = getattr(kind, name)

    def going_on(self: Any, *given: Any) -> Iterator[Any]:
        found = list(original(self, *given))
        yield from found
        begun()
        for _ in range(_TURNS):
            time.sleep(0.05)
            yield from found
        ended()

    setattr(kind, name, going_on)


def interrupted(kind: type, name: str, temporary: Path, *arguments: str) -> tuple[int, set[str]]:
    """The exit code of a command that gets a SIGINT during its work, and what it tells of that."""
    told, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            tempfile.tempdir = str(temporary)
            row_sort.RUN_BYTES = 1
            file_rewriter.RUN_ROWS = 1
            endless(kind, name, lambda: _tell(tells, "begun\n"), lambda: _tell(tells, "ended\n"))
            code = run(["maintain", *arguments])
        finally:
            os._exit(code)
    os.close(tells)
    with os.fdopen(told) as lines:
        said = [lines.readline()]
        while "--sort-order" in arguments and not any(temporary.iterdir()):
            time.sleep(0.01)
        os.kill(pid, signal.SIGINT)
        said += lines
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), set(said)


def _tell(descriptor: int, what: str) -> None:
    os.write(descriptor, what.encode())


COMMANDS = {
    "binpack": (FileRewriter, "_read", ["rewrite-data-files", "--option", "rewrite-all=true"]),
    "sort": (
        *(FileRewriter, "_read"),
        ["rewrite-data-files", "--option", "rewrite-all=true", "--sort-order", "id DESC"],
    ),
    "position deletes": (
        *(PositionDeleteRewriter, "_applying"),
        ["rewrite-position-delete-files", "--option", "rewrite-all=true"],
    ),
    "equality deletes": (EqualityConverter, "_rounds", ["convert-equality-deletes"]),
}


@pytest.mark.parametrize("name", sampled(COMMANDS, keep=2))
def test_ctrl_c_ends_a_rewrite_at_once_and_leaves_nothing_behind(
    lake: Any, tmp_path: Path, name: str
) -> None:
    table = new_table(lake, frame(1, 2, 3), frame(4, 5))
    for row in (1, 4):
        table.refresh().delete(f"id = {row}")
    delete_by_value(table, 2)
    before, files, state = in_order(table), data_on_disk(table), table.metadata_location
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    kind, method, arguments = COMMANDS[name]
    code, said = interrupted(
        kind, method, temporary, arguments[0], table.location(), *arguments[1:]
    )
    assert (code, said) == (INTERRUPTED, {"begun\n"})
    assert list(temporary.iterdir()) == []
    assert table.refresh().metadata_location == state
    assert in_order(table) == before
    assert data_on_disk(table) == files
