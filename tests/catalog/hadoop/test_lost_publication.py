"""A version whose publication is not answered: the file that is there says whose it is."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog.commit.pointer import Committed, Conflict, MetadataVersion, Unknown
from icecomb.catalog.hadoop.catalog import HadoopCatalog
from icecomb.format.errors import FileAlreadyExistsError, FileIOError, FileStateUnknownError
from icecomb.format.spec.change.update import SetPropertiesUpdate, update_table_metadata
from icecomb.format.storage.hdfs.file_system import HdfsFileSystem
from icecomb.format.storage.local import LocalFileSystem
from icecomb.format.storage.object_store.azure import AzureFileSystem
from icecomb.format.storage.object_store.google import GoogleFileSystem
from icecomb.format.storage.object_store.s3 import S3FileSystem

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


@pytest.mark.parametrize(("is_proof", "outcome"), [(True, Conflict), (False, Committed)])
def test_a_refusal_where_requests_are_repeated_may_be_of_its_own_repetition(
    pointer, monkeypatch, is_proof, outcome
):
    """Whatever the number of requests at a time, which may be one on an object store, too."""
    monkeypatch.setattr(LocalFileSystem, "refusal_is_proof", is_proof)
    taken = FileAlreadyExistsError("the name is taken")
    assert isinstance(swapped(pointer, monkeypatch, "ours", taken), outcome)


def test_only_object_stores_repeat_what_creates_a_file():
    kinds = (LocalFileSystem, HdfsFileSystem, S3FileSystem, GoogleFileSystem, AzureFileSystem)
    assert [kind.refusal_is_proof for kind in kinds] == [True, True, False, False, False]
    assert [kind.has_slow_requests for kind in kinds] == [False, False, True, True, True]
