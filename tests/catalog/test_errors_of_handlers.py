"""An error of icecomb that a signal handler raises says nothing of the commit that it interrupts."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.hive.thrift.failure import RefusedError
from icecomb.format.errors import FileAlreadyExistsError, NoSuchTableError
from icecomb.format.storage.local import LocalFileSystem

ROWS = pa.table({"id": pa.array([1], pa.int64())})


@pytest.fixture
def handled() -> Iterator[Callable[[Exception], None]]:
    """Let a handler raise an error, here and now."""
    raised: list[Exception] = []

    def handler(*_: object) -> None:
        raise raised.pop()

    def interrupt(error: Exception) -> None:
        raised.append(error)
        signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handler)
    yield interrupt
    signal.signal(signal.SIGUSR1, before)


def test_an_existing_file_of_the_handlers_is_no_lost_race_of_a_folders_commit(
    tmp_path: Any, handled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", ROWS.schema)
    create = LocalFileSystem.create

    def interrupted(self: Any, location: str, data: bytes) -> None:
        create(self, location, data)
        if "/v2." in location:
            handled(FileAlreadyExistsError("the handler's own"))

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "create", interrupted)
        with pytest.raises(FileAlreadyExistsError, match="the handler's own"):
            table.append(ROWS)
    assert lake.load_table("db.t").scan().to_arrow() == ROWS
    table.append(ROWS)
    assert lake.load_table("db.t").scan().count() == 2


@pytest.mark.parametrize(
    "error",
    [
        RefusedError("the handler's own", kind="MetaException", answer=""),
        NoSuchTableError("the handler's own"),
    ],
)
def test_an_answer_to_the_handler_is_none_to_a_metastores_commit(
    catalog: Any, namespace: str, handled: Any, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    """The request that was interrupted may be carried out later: its file must stay."""
    table = catalog.create_table(f"{namespace}.t", ROWS.schema)
    client = type(catalog.client)
    alter = client.alter_table
    late: list[Callable[[], None]] = []

    def interrupted(self: Any, database: str, name: str, *given: Any, **more: Any) -> None:
        if name != "t":  # of a probe
            alter(self, database, name, *given, **more)
            return
        late.append(lambda: alter(self, database, name, *given, **more))
        handled(error)

    with monkeypatch.context() as patch:
        patch.setattr(client, "alter_table", interrupted)
        with pytest.raises(type(error), match="the handler's own"):
            table.append(ROWS)
    assert len(late) == 1
    late[0]()
    assert catalog.load_table(f"{namespace}.t").scan().to_arrow() == ROWS
