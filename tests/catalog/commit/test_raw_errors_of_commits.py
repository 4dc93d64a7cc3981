"""A commit that was made, and whose answer no program understands, has an unknown outcome: nobody repeats it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.hive.thrift.calls import Calls
from icecomb.format import (
    FileAlreadyExistsError,
    NoSuchFileError,
    ObjectFileSystem,
    ObjectStatus,
    SimpleObjectClient,
    register_file_system,
)
from icecomb.format.errors import CommitStateUnknownError

OBJECTS: dict[str, bytes] = {}
AFTER: list[Exception] = []
"""What comes out of the store after the next metadata file was put, and whenever it is looked at."""
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
RAW = [IndexError("list index out of range"), RecursionError("too deep"), OSError("gone")]


class Store(SimpleObjectClient):
    def status(self, key, location):
        return ObjectStatus(key, len(self.read(key, location)), mtime_ms=1_800_000_000_000)

    def read(self, key, location, start=0, length=None):
        if key not in OBJECTS:
            raise NoSuchFileError(f"{location} does not exist", path=location)
        return OBJECTS[key][start:][:length]

    def put(self, key, location, data, *, replace):
        if key in OBJECTS and not replace:
            raise FileAlreadyExistsError(f"{location} exists already", path=location)
        OBJECTS[key] = bytes(data)
        if AFTER and key.endswith(".metadata.json"):
            raise AFTER.pop()

    def objects(self, prefix, location):
        return (self.status(key, location) for key in [*OBJECTS] if key.startswith(prefix))

    def delete(self, keys, _):
        for key in keys:
            OBJECTS.pop(key, None)
        return {}


class StoreFileSystem(ObjectFileSystem):
    scheme = "rawstore"

    def split(self, location):
        return "rawstore://", location.removeprefix("rawstore://")

    def connect(self, _):
        return Store()


@pytest.mark.parametrize("raw", RAW, ids=repr)
def test_a_table_in_a_folder_of_a_store_does_not_say_that_its_commit_failed(raw):
    OBJECTS.clear()
    register_file_system("rawstore", StoreFileSystem)
    lake = load_catalog("lake", type="hadoop", warehouse="rawstore://lake")
    lake.create_namespace("db")
    table = lake.create_table("db.t", ROWS.schema)
    AFTER.append(raw)
    with pytest.raises(CommitStateUnknownError, match="unknown whether") as unknown:
        table.append(ROWS)
    assert unknown.value.__cause__ is raw
    assert lake.load_table("db.t").scan().count() == 3  # nothing that it needs was deleted
    lake.close()


@pytest.mark.parametrize("raw", RAW, ids=repr)
def test_a_table_of_a_metastore_does_not_say_that_its_commit_failed(
    catalog, namespace, monkeypatch, raw
):
    table = catalog.create_table(f"{namespace}.t", ROWS.schema)
    table.append(ROWS)
    send = Calls.send

    def sent(self, method, call):
        answer = send(self, method, call)
        if method.startswith("alter_table"):
            raise raw
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(Calls, "send", sent)
        with pytest.raises(CommitStateUnknownError, match="unknown whether"):
            table.append(ROWS)
    assert catalog.load_table(table.identifier).scan().count() == 6


@pytest.mark.parametrize("raw", RAW, ids=repr)
def test_a_table_is_not_said_to_be_unregistered_by_such_an_answer(
    catalog, namespace, monkeypatch, raw
):
    known = catalog.create_table(f"{namespace}.t", ROWS.schema).metadata_location
    send = Calls.send

    def sent(self, method, call):
        answer = send(self, method, call)
        if method.startswith("create_table"):
            raise raw
        return answer

    with monkeypatch.context() as patched:
        patched.setattr(Calls, "send", sent)
        with pytest.raises(CommitStateUnknownError, match="unknown whether it was registered"):
            catalog.register_table(f"{namespace}.u", known)
    assert catalog.table_exists(f"{namespace}.u")
