"""A file in HDFS gets its name when it is whole, and takes nobody's place; without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest

from icecomb.format.errors import FileAlreadyExistsError
from icecomb.format.storage.hdfs.failure import HdfsDataLostError
from icecomb.format.storage.hdfs.file_system import HdfsFileSystem

PLACE = "hdfs://nn/lake/v1.metadata.json"


class NameNode:
    """Keeps what is sent, cut short if told so."""

    def __init__(self, kept: int | None = None) -> None:
        self._kept = kept
        self.files: dict[str, bytes] = {}

    @contextmanager
    def upload(self, path: str, _: str) -> Iterator[Any]:
        sent = BytesIO()
        upload = SimpleNamespace(write=sent.write, written=0)
        yield upload
        upload.written = len(sent.getvalue())
        self.files[path] = sent.getvalue()[: self._kept]

    def status(self, path: str, _: str) -> Any:
        return SimpleNamespace(size=len(self.files[path]), file_id=1, is_folder=False)

    def publish(self, source: str, target: str, _: int, location: str, **__: bool) -> None:
        if target in self.files:
            raise FileAlreadyExistsError(location)
        self.files[target] = self.files.pop(source)

    def delete(self, path: str, _: str) -> bool:
        return self.files.pop(path, None) is not None


def file_system(name_node: NameNode, monkeypatch: pytest.MonkeyPatch) -> HdfsFileSystem:
    found = HdfsFileSystem({})
    where = (name_node, SimpleNamespace(path="/lake/v1.metadata.json"))
    monkeypatch.setattr(found, "cluster", lambda _: where)
    return found


def send(hdfs: HdfsFileSystem, data: bytes) -> None:
    with hdfs._new_file(PLACE) as upload:
        upload.write(data)


def test_a_file_that_arrived_whole_gets_its_name(monkeypatch):
    name_node = NameNode()
    send(file_system(name_node, monkeypatch), b"whole")
    assert name_node.files == {"/lake/v1.metadata.json": b"whole"}


def test_a_file_that_did_not_arrive_whole_gets_no_name_and_leaves_nothing(monkeypatch):
    name_node = NameNode(kept=3)
    with pytest.raises(HdfsDataLostError, match="5 bytes were sent, 3 arrived"):
        send(file_system(name_node, monkeypatch), b"whole")
    assert name_node.files == {}


def test_a_file_takes_nobody_s_name_and_leaves_nothing(monkeypatch):
    name_node = NameNode()
    name_node.files["/lake/v1.metadata.json"] = b"theirs"
    with pytest.raises(FileAlreadyExistsError):
        send(file_system(name_node, monkeypatch), b"ours")
    assert name_node.files == {"/lake/v1.metadata.json": b"theirs"}
