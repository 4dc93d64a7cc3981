"""A version whose publication is not answered: the file that is there says whose it is."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog.commit.pointer import Committed, Conflict, MetadataVersion, Unknown
from icecomb.catalog.hadoop.catalog import HadoopCatalog
from icecomb.format.errors import FileIOError, FileStateUnknownError
from icecomb.format.spec.change.update import SetPropertiesUpdate, update_table_metadata

LOST = FileStateUnknownError("the answer was lost")


@pytest.fixture
def pointer(tmp_path):
    catalog = HadoopCatalog("lake", {"warehouse": str(tmp_path)})
    catalog.create_namespace("db")
    return catalog.create_table("db.t", pa.schema([("id", pa.int64())]))._pointer


def changed(base, value):
    return update_table_metadata(base.metadata, [SetPropertiesUpdate({"a": value})])


def swapped(pointer, monkeypatch, there, error=LOST):
    """The outcome when an error comes instead of an answer, and this is found in the folder."""
    base = pointer.load()
    new = pointer.stage(base, changed(base, "ours"))
    found = {
        "ours": new.metadata.to_json(),
        "theirs": changed(base, "theirs").to_json(),
        "a page": "<html><body>Who are you?</body></html>",
    }.get(there)

    @contextmanager
    def prepare(*_: object, **__: object):
        def publish() -> None:
            if found is not None:
                Path(new.location).write_text(found)
            raise error

        yield publish

    monkeypatch.setattr(pointer._io, "prepare", prepare)
    assert isinstance(base, MetadataVersion)
    return pointer.swap(base, new)


def test_a_version_that_is_there_with_its_own_bytes_is_committed(pointer, monkeypatch):
    assert isinstance(swapped(pointer, monkeypatch, "ours"), Committed)


def test_a_version_that_is_there_with_other_bytes_is_another_s(pointer, monkeypatch):
    assert isinstance(swapped(pointer, monkeypatch, "theirs"), Conflict)


def test_what_is_no_metadata_proves_nothing(pointer, monkeypatch):
    assert isinstance(swapped(pointer, monkeypatch, "a page"), Unknown)


def test_a_version_that_is_not_there_may_still_come(pointer, monkeypatch):
    assert isinstance(swapped(pointer, monkeypatch, "nothing"), Unknown)


def test_a_version_that_was_refused_and_is_not_there_is_an_error(pointer, monkeypatch):
    with pytest.raises(FileIOError, match="no space"):
        swapped(pointer, monkeypatch, "nothing", FileIOError("no space"))
