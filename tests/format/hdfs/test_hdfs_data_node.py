"""The only data node is killed in the middle of a read and of a write."""

from __future__ import annotations

import os
import time

import pytest

from icecomb.format.errors import FileIOError
from icecomb.format.storage.file_io import FileIO

pytestmark = pytest.mark.full("kills a data node; the gate cuts its connections")

PIECE = 1 << 20


def test_a_killed_data_node_is_an_error_that_leaves_no_file_and_ends_with_its_return(
    hdfs, place, request
):
    io = FileIO({**hdfs.client_settings, "hdfs.user": "alice"})
    data = os.urandom(24 * PIECE)
    io.create(f"{place}/whole", data)
    request.addfinalizer(lambda: "dn" in hdfs.processes or hdfs.launch("dn"))
    with io.open_input(f"{place}/whole") as source:
        assert source.read(PIECE) == data[:PIECE]
        with (  # noqa: PT012
            pytest.raises(FileIOError, match=f"{place}/half"),
            io.create_stream(f"{place}/half") as out,
        ):
            for number in range(64):
                if number == 12:
                    hdfs.kill("dn")
                out.write(data[:PIECE])
        with pytest.raises(FileIOError, match=f"Cannot read {place}/whole"):
            source.read()
        with pytest.raises(FileIOError, match=f"{place}/small"):
            io.create(f"{place}/small", b"1")
        assert [each.location for each in io.list(place)] == [f"{place}/whole"]
        hdfs.launch("dn")
        end = time.monotonic() + 300
        while True:
            try:
                assert source.seek(PIECE) == PIECE
                assert source.read() == data[PIECE:]
                io.create(f"{place}/half", data)
                break
            except FileIOError:
                assert time.monotonic() < end
                time.sleep(0.5)
    assert io.read(f"{place}/half") == data
    assert sorted(each.location for each in io.list(place)) == [f"{place}/half", f"{place}/whole"]
