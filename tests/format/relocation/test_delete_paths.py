"""Delete files are rewritten with other paths: the same positions, sorted, in few row groups."""

from __future__ import annotations

import json
import struct
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.errors import CorruptFileError, NoSuchFileError
from icecomb.format.relocation.delete_paths import changed_deletes, described
from icecomb.format.storage.file_io import FileIO

IO = FileIO()
SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
    ]
)


def moved(path):
    return path.replace("/a/", "/somewhere/else/")


def changed(path, rows=0, kind="PARQUET", **properties):
    size = path.stat().st_size if path.exists() else 1
    record = {"file_format": kind, "record_count": rows}
    return changed_deletes(
        IO, described({**record, "file_size_in_bytes": size}, str(path)), moved, properties
    )


def test_a_delete_file_of_many_data_files_is_sorted_and_has_one_row_group(tmp_path):
    pairs = [(f"/a/{i % 300}", i) for i in range(900)]
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table([[p for p, _ in pairs], [i for _, i in pairs]], schema=SCHEMA), path)

    content, new = changed(path, 900)

    file = pq.ParquetFile(BytesIO(content))
    assert file.num_row_groups == 1
    found = [(row["file_path"], row["pos"]) for row in file.read().to_pylist()]
    assert found == sorted((f"/somewhere/else/{i % 300}", i) for i in range(900))
    ids = [field.metadata[b"PARQUET:field_id"] for field in file.schema_arrow]
    assert ids == [b"2147483546", b"2147483545"]
    assert new.members["file_size_in_bytes"] == len(content)
    assert new.members["lower_bounds"][2147483546] == b"/somewhere/else/0"
    assert new.members["upper_bounds"][2147483546] == b"/somewhere/else/99"
    assert new.members["split_offsets"] == [4]
    # the table's codec, and the same bytes each time
    assert file.metadata.row_group(0).column(1).compression == "ZSTD"
    assert changed(path, 900)[0] == content
    plain, _ = changed(path, 900, **{"write.delete.parquet.compression-codec": "uncompressed"})
    other = pq.ParquetFile(BytesIO(plain)).metadata.row_group(0)
    assert other.column(1).compression == "UNCOMPRESSED"


def test_the_vectors_of_a_puffin_file_keep_their_bytes_and_get_other_names(tmp_path):
    first, second = b"\x00\x00\x00\x01abc", b"vector"
    blobs = [
        {
            "type": "deletion-vector-v1",
            "fields": [2147483645],
            "snapshot-id": -1,
            "sequence-number": -1,
            "offset": offset,
            "length": len(content),
            "properties": {"referenced-data-file": f"/a/{name}", "cardinality": "1"},
        }
        # a gap of three bytes between them
        for name, offset, content in (("x", 4, first), ("y", 4 + len(first) + 3, second))
    ]
    payload = json.dumps({"blobs": blobs, "properties": {"created-by": "somebody"}}).encode()
    footer = b"PFA1" + payload + struct.pack("<i4s4s", len(payload), bytes(4), b"PFA1")
    path = tmp_path / "d.puffin"
    path.write_bytes(b"PFA1" + first + b"gap" + second + footer)

    written, new = changed(path, 1, "PUFFIN")

    (length,) = struct.unpack("<i", written[-12:-8])
    found = json.loads(written[-12 - length : -12])["blobs"]
    assert [one["properties"]["referenced-data-file"] for one in found] == [
        "/somewhere/else/x",
        "/somewhere/else/y",
    ]
    contents = [written[one["offset"] :][: one["length"]] for one in found]
    assert contents == [first, second]
    assert new.offsets == {b["offset"]: f["offset"] for b, f in zip(blobs, found, strict=True)}
    assert new.members == {"file_size_in_bytes": len(written)}
    keys = ("type", "fields", "snapshot-id", "sequence-number")
    assert [[one[k] for k in keys] for one in found] == [[one[k] for k in keys] for one in blobs]


@pytest.mark.parametrize("kind", ["PARQUET", "ORC", "AVRO", "PUFFIN"])
def test_damaged_and_missing_files_are_named(tmp_path, kind):
    path = tmp_path / "d"
    with pytest.raises(NoSuchFileError, match="d does not exist"):
        changed(path, kind=kind)
    path.write_bytes(b"no such file")
    with pytest.raises(CorruptFileError, match=str(path)):
        changed(path, kind=kind)
