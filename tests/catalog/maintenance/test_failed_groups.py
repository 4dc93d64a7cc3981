"""Rewritten groups whose commit fails, or whose status is unknown: what may be needed is kept."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from maintained_table import ALL, data_on_disk, delete_by_value, frame, new_table
from needed_files import needed_files, path

from icecomb.catalog import Table
from icecomb.catalog.commit.pointer import Unknown
from icecomb.catalog.hadoop.pointer import HadoopPointer
from icecomb.format.errors import CommitStateUnknownError, FileIOError
from tests.rings import sampled

pytestmark = pytest.mark.gate("four rewrites a test")
LEFT = [1, 3, 5, 7, 8]
PARTS = {"max-file-group-input-files": "2", "partial-progress.enabled": "true"}
ACTIONS: dict[str, Callable[[Table], Any]] = {
    "data files": lambda table: table.maintenance.rewrite_data_files(options=ALL),
    "sorted": lambda table: table.maintenance.rewrite_data_files(sort_order="id", options=ALL),
    "in parts": lambda table: table.maintenance.rewrite_data_files(options={**ALL, **PARTS}),
    "position deletes": lambda table: table.maintenance.rewrite_position_delete_files(options=ALL),
    "equality deletes": lambda table: table.maintenance.convert_equality_deletes(),
}


def shown(value: Any) -> str:
    """Return what a case is called."""
    return type(value).__name__ if isinstance(value, BaseException) else str(value)


ENDS = [KeyboardInterrupt(), MemoryError(), OSError(5, "broken"), ValueError("a bug")]
"""None of these says whether the commit happened."""


@pytest.fixture
def table(lake: Any) -> Table:
    table = new_table(lake, *(frame(n, n + 1) for n in (1, 3, 5, 7)))
    for row in (2, 4):
        table.refresh().delete(f"id = {row}")
    delete_by_value(table, 6)
    return table


def whole(table: Table) -> None:
    """The rows are there, and every file of every snapshot."""
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == LEFT
    assert all(path(one).is_file() for one in needed_files(table))


def ending(monkeypatch: Any, publish: Callable[[Callable[[], Any]], Any]) -> None:
    """Have something else happen where a commit is published."""
    original = HadoopPointer.swap

    def swapped(self: HadoopPointer, *given: Any) -> Any:
        return publish(lambda: original(self, *given))

    monkeypatch.setattr(HadoopPointer, "swap", swapped)


@pytest.mark.parametrize(
    ("name", "done", "end"), sampled(product(ACTIONS, (True, False), ENDS), keep=11), ids=shown
)
def test_a_commit_that_something_ends_keeps_what_it_may_have_committed(
    table: Table, monkeypatch: Any, name: str, done: Any, end: BaseException
) -> None:
    before = len(table.refresh().snapshots())

    def publish(really: Callable[[], Any]) -> Any:
        if done:
            really()
        raise end

    with monkeypatch.context() as patched:
        ending(patched, publish)
        # what no program expects of a request tells nothing of what became of it
        error = CommitStateUnknownError if isinstance(end, Exception) else type(end)
        with pytest.raises(error):
            ACTIONS[name](table)
    whole(table)
    assert len(table.snapshots()) == before + done
    ACTIONS[name](table)
    whole(table)


@pytest.mark.parametrize(
    ("done", "name"), sampled(product((True, False), ACTIONS), keep=5), ids=shown
)
def test_a_commit_of_unknown_fate_keeps_its_files_for_a_late_request(
    table: Table, monkeypatch: Any, name: str, done: Any
) -> None:
    late: list[Callable[[], Any]] = []

    def publish(really: Callable[[], Any]) -> Any:
        late.append(really)
        if done:
            really()
        return Unknown("the answer was lost", None, OSError("lost"))

    before = len(table.refresh().snapshots())
    with monkeypatch.context() as patched:
        ending(patched, publish)
        with pytest.raises(CommitStateUnknownError):
            ACTIONS[name](table)
    whole(table)
    (request,) = late
    if not done:
        request()
    whole(table)
    assert len(table.snapshots()) == before + 1


@pytest.mark.parametrize("name", ACTIONS)
def test_a_commit_that_is_refused_leaves_nothing(table: Table, monkeypatch: Any, name: str) -> None:
    state, files = table.refresh().metadata_location, data_on_disk(table)
    folder = Path(str(path(table.location()))) / "metadata"
    metadata = set(folder.iterdir())

    def publish(_: Callable[[], Any]) -> Any:
        raise FileIOError("the storage is full", hint="Free space")

    with monkeypatch.context() as patched:
        ending(patched, publish)
        if name == "in parts":
            assert ACTIONS[name](table).failed_data_files_count == 4
        else:
            with pytest.raises(FileIOError):
                ACTIONS[name](table)
    whole(table)
    assert table.metadata_location == state
    assert data_on_disk(table) == files
    assert set(folder.iterdir()) == metadata


@pytest.mark.parametrize(("name", "end"), sampled(product(ACTIONS, ENDS), keep=6), ids=shown)
def test_what_ends_it_between_writing_and_committing_leaves_the_table(
    table: Table, monkeypatch: Any, name: str, end: BaseException
) -> None:
    state = table.refresh().metadata_location

    def commit(*_: Any) -> Any:
        raise end

    with monkeypatch.context() as patched:
        patched.setattr(Table, "commit", commit)
        with pytest.raises(type(end)):
            ACTIONS[name](table)
    whole(table)
    assert table.metadata_location == state
    ACTIONS[name](table)
    whole(table)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: type(end).__name__)
def test_what_ends_it_after_one_part_was_committed_keeps_that_part(
    table: Table, monkeypatch: Any, end: BaseException
) -> None:
    before, original, calls = len(table.refresh().snapshots()), Table.commit, []

    def commit(self: Any, *given: Any) -> Any:
        calls.append(original(self, *given))
        raise end

    with monkeypatch.context() as patched:
        patched.setattr(Table, "commit", commit)
        with pytest.raises(type(end)):
            ACTIONS["in parts"](table)
    whole(table)
    assert (len(table.snapshots()), len(calls)) == (before + 1, 1)
