"""Puffin files are read whoever wrote them; damaged ones are named errors."""

from __future__ import annotations

import io
import json
import struct

import pyarrow as pa
import pytest
from pyiceberg.table.puffin import PuffinFile

from icecomb.format.errors import CorruptFileError, UnsupportedError
from icecomb.format.rows.deletes.puffin_file import PuffinReader, PuffinWriter

EMPTY = bytes.fromhex("50464131504641317b22626c6f6273223a5b5d7d0c0000000000000050464131")
"""The footer of the specification's example of a file without blobs."""


def written(*blobs):
    stream = io.BytesIO()
    writer = PuffinWriter(stream)
    for content, properties in blobs:
        writer.add(content, "a-type", [1, 2], properties, snapshot_id=7, sequence_number=3)
    assert writer.finish() == len(stream.getvalue())
    return stream.getvalue(), writer.footer_size


def packed(data, codec):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def with_footer(content, footer, flags=0):
    trailer = struct.pack("<i", len(footer)) + bytes([flags, 0, 0, 0]) + b"PFA1"
    return b"PFA1" + content + b"PFA1" + footer + trailer


def footer_of(length, codec):
    blob = {"type": "t", "fields": [1], "snapshot-id": 1, "sequence-number": 1}
    more = {"offset": 4, "length": length, "compression-codec": codec}
    return json.dumps({"blobs": [blob | more]}).encode()


def test_what_is_written_is_read_and_the_footer_begins_where_its_length_says():
    content, footer = written((b"abc", {"ndv": "5"}), (b"", {}))
    reader = PuffinReader(content, "a.stats")
    first, second = reader.blobs
    assert (reader.content(first), reader.content(second)) == (b"abc", b"")
    assert (first.type, first.fields, first.snapshot_id) == ("a-type", (1, 2), 7)
    assert (first.sequence_number, dict(first.properties)) == (3, {"ndv": "5"})
    assert content[-footer:][:4] == b"PFA1"
    assert [blob.offset for blob in PuffinFile(content).footer.blobs] == [4, 7]


def test_a_file_without_blobs_is_read():
    assert PuffinReader(EMPTY, "a.stats").blobs == ()


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_blobs_and_footers_are_unpacked(codec):
    blob = packed(b"abc" * 1000, codec)
    footer = footer_of(len(blob), codec)
    for content in (
        with_footer(blob, footer),
        with_footer(blob, packed(footer, "lz4"), flags=1),
    ):
        reader = PuffinReader(content, "a.stats")
        assert reader.content(reader.blobs[0]) == b"abc" * 1000


def test_the_limit_of_what_is_unpacked_is_that_of_all_blobs(monkeypatch):
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", "1")
    content = packed(bytes(600 << 10), "zstd")
    blob = json.loads(footer_of(len(content), "zstd"))["blobs"][0]
    footer = json.dumps({"blobs": [blob, {**blob, "offset": 4 + len(content)}]}).encode()
    reader = PuffinReader(with_footer(content * 2, footer), "a.stats")
    first, second = reader.blobs
    assert reader.content(first) == bytes(600 << 10)
    with pytest.raises(CorruptFileError, match="a blob cannot be unpacked"):
        reader.content(second)


def test_an_unknown_codec_is_refused_by_name():
    reader = PuffinReader(with_footer(b"abc", footer_of(3, "brotli")), "a.stats")
    with pytest.raises(UnsupportedError, match=r"a\.stats is compressed with brotli"):
        reader.content(reader.blobs[0])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PFA1",
        EMPTY[:-1],
        b"XXXX" + EMPTY[4:],
        EMPTY.replace(b'"blobs":[]', b'"blobs":{}').replace(b"{}}", b"0}}"),
        with_footer(b"", b'{"blobs":[{"type":"t"}]}'),
        with_footer(b"", b"[]"),
        with_footer(b"", b"{}", flags=2),
        with_footer(b"", b"no lz4", flags=1),
    ],
)
def test_a_damaged_file_is_a_named_error(content):
    with pytest.raises(CorruptFileError, match=r"a\.stats is not a sound Puffin file"):
        PuffinReader(content, "a.stats")


@pytest.mark.parametrize(("length", "codec"), [(3000, None), (3, "zstd")])
def test_a_damaged_blob_is_a_named_error(length, codec):
    reader = PuffinReader(with_footer(b"abc", footer_of(length, codec)), "a.stats")
    with pytest.raises(CorruptFileError, match=r"a\.stats is not a sound Puffin file"):
        reader.content(reader.blobs[0])
