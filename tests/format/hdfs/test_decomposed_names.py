"""Names with decomposed letters, which Java composes in the URL that it answers with."""

from __future__ import annotations

from typing import Any

import pytest

from icecomb.format.errors import FileIOError
from icecomb.format.storage.file_io import FileIO

DECOMPOSED, COMPOSED = "cafe\u0301 100%", "caf\u00e9 100%"


def check(io: FileIO, place: str) -> None:
    io.create(f"{place}/{COMPOSED}/x", b"composed")
    io.create(f"{place}/{DECOMPOSED}/x", b"decomposed")
    assert io.read(f"{place}/{DECOMPOSED}/x") == b"decomposed"
    assert io.read(f"{place}/{COMPOSED}/x") == b"composed"
    with io.open_input(f"{place}/{DECOMPOSED}/x") as opened:
        assert opened.read() == b"decomposed"
    io.create(f"{place}/alone/{DECOMPOSED}", b"alone")
    assert io.read(f"{place}/alone/{DECOMPOSED}") == b"alone"
    assert [found.location for found in io.list(f"{place}/alone")] == [
        f"{place}/alone/{DECOMPOSED}"
    ]
    assert not io.exists(f"{place}/alone/{COMPOSED}")


def test_a_name_stays_that_of_its_own_file(memory: Any, memory_io: FileIO) -> None:
    check(memory_io, "hdfs://lake/t")
    assert sorted(memory.files) == [
        *(f"/t/alone/{DECOMPOSED}", f"/t/{DECOMPOSED}/x", f"/t/{COMPOSED}/x")
    ]


def test_on_a_cluster_too(hdfs: Any, place: str) -> None:
    io = FileIO({**hdfs.client_settings, "hdfs.user": "alice"})
    check(io, place)
    io.close()


def test_a_name_that_cannot_be_put_in_is_refused(memory: Any, memory_io: FileIO) -> None:
    memory.put(f"/t/{DECOMPOSED}", b"x")
    memory.gateway = "http://gateway/data?_=encrypted"
    with pytest.raises(FileIOError, match="would lead to another file") as caught:
        memory_io.read(f"hdfs://lake/t/{DECOMPOSED}")
    assert "hdfs.engine=native" in caught.value.hint
