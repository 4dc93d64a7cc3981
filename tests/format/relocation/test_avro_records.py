"""Manifests of all writers are changed in their paths only: schema, codec and other values stay."""

from __future__ import annotations

from io import BytesIO

import fastavro
import pytest

from icecomb.format.errors import CorruptFileError
from icecomb.format.manifests.schema import ENTRY_NAMES
from icecomb.format.relocation.delete_paths import change_record
from icecomb.format.relocation.relocation import AvroRecords, FilePaths

PAIR = {
    "type": "record",
    "name": "k126_v127",
    "fields": [
        {"name": "key", "type": "int", "field-id": 126},
        {"name": "value", "type": "bytes", "field-id": 127},
    ],
}
SCHEMA = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        {"name": "status", "type": "int", "field-id": 0},
        {"name": "snapshot_id", "type": ["null", "long"], "default": None, "field-id": 1},
        {
            "name": "data_file",
            "field-id": 2,
            "type": {
                "type": "record",
                "name": "r2",
                "fields": [
                    {"name": "note", "type": ["null", "string"], "field-id": 9001},
                    {"name": "path_of_old", "type": "string", "field-id": 100},
                    {
                        "name": "partition",
                        "field-id": 102,
                        "type": {
                            "type": "record",
                            "name": "r102",
                            "fields": [
                                {
                                    "name": "day",
                                    "type": ["null", {"type": "int", "logicalType": "date"}],
                                    "field-id": 1000,
                                },
                                {
                                    "name": "f",
                                    "type": {"type": "fixed", "name": "f3", "size": 3},
                                    "field-id": 1001,
                                },
                            ],
                        },
                    },
                    {
                        "name": "lower_bounds",
                        "type": ["null", {"type": "array", "items": PAIR, "logicalType": "map"}],
                        "field-id": 125,
                    },
                    {
                        "name": "sizes",
                        "type": ["null", {"type": "map", "values": "long"}],
                        "field-id": 108,
                    },
                    {
                        "name": "kind",
                        "type": {"type": "enum", "name": "e", "symbols": ["A", "B"]},
                        "field-id": 9002,
                    },
                    {"name": "several", "type": ["null", "string", "long"], "field-id": 9003},
                ],
            },
        },
    ],
}


def entry(path, note=None, several=7):
    return {
        "status": 1,
        "snapshot_id": None,
        "data_file": {
            "note": note,
            "path_of_old": path,
            "partition": {"day": 19000, "f": b"abc"},
            "lower_bounds": [{"key": 1, "value": b"\x00\xff"}],
            "sizes": {"1": 2**40},
            "kind": "B",
            "several": several,
        },
    }


def written(entries, codec="deflate"):
    out = BytesIO()
    metadata = {"partition-spec-id": "3", "schema": '{"größe": 1}'}
    fastavro.writer(out, SCHEMA, entries, codec=codec, metadata=metadata)
    return out.getvalue()


def read(data):
    reader = fastavro.reader(BytesIO(data))
    header = {key: value for key, value in reader.metadata.items() if key != "avro.codec"}
    return header, reader.codec, list(reader)


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_only_the_paths_of_files_change(codec):
    data = written([entry("/a/1"), entry("/a/2", note="/a/2"), entry("/a/é", several="x")], codec)
    file = FilePaths(data, "m.avro", ENTRY_NAMES, ("file_path",))
    assert [one["data_file"] for one in file.entries] == [
        {"file_path": path} for path in ("/a/1", "/a/2", "/a/é")
    ]
    changed = file.to_bytes(["/longer/1", "/longer/2", "/longer/é"])
    expected = [
        entry("/longer/1"),
        entry("/longer/2", note="/a/2"),
        entry("/longer/é", several="x"),
    ]
    (header, kept, found), (before, _, _) = read(changed), read(data)
    assert header == before
    assert kept == codec
    assert found == read(written(expected))[2]


def test_records_that_are_not_changed_are_encoded_as_they_were():
    data = written([entry("/a/1"), entry("/a/2", note="n", several="x")])
    file = AvroRecords(data, "m.avro", ENTRY_NAMES)
    assert file.records[0]["data_file"]["file_path"] == "/a/1"
    assert read(file.to_bytes()) == read(data)


def test_the_same_change_of_a_file_has_the_same_bytes():
    data = written([entry(f"/a/{i}") for i in range(5000)])
    paths = [f"/b/{i}" for i in range(5000)]
    first, second = (
        FilePaths(data, "m.avro", ENTRY_NAMES, ("file_path",)).to_bytes(paths) for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize("kind", [FilePaths, AvroRecords])
def test_entries_that_do_not_fill_the_file_are_an_error(kind):
    wider = [{**SCHEMA, "fields": [*SCHEMA["fields"], {"name": "x", "type": "long"}]}]
    out = BytesIO()
    fastavro.writer(out, wider[0], [{**entry("/a/1"), "x": 5}], codec="null")
    data = out.getvalue().replace(b', {"name": "x", "type": "long"}', b" " * 31)
    arguments = (("file_path",),) if kind is FilePaths else ()
    with pytest.raises(CorruptFileError, match=r"m\.avro holds records that do not decode"):
        kind(data, "m.avro", ENTRY_NAMES, *arguments)


def test_a_manifest_of_an_unknown_type_is_an_error():
    data = written([entry("/a/1")], "null").replace(b'"type": "enum"', b'"type": "emun"')
    with pytest.raises(CorruptFileError, match=r"m\.avro"):
        FilePaths(data, "m.avro", ENTRY_NAMES, ("file_path",))


def bounds(lower, upper, *, as_map):
    """The record of a delete file that is gone, with bounds of the path column, and of the position."""
    ids = (2147483546, 2147483545)
    if as_map:
        return {
            name: {str(ids[0]): path, str(ids[1]): b"\x01"}
            for name, path in (("lower_bounds", lower), ("upper_bounds", upper))
        }
    return {
        name: [{"key": ids[0], "value": path}, {"key": ids[1], "value": b"\x01"}]
        for name, path in (("lower_bounds", lower), ("upper_bounds", upper))
    }


def moved(path):
    return path.replace("/a/", "/b/") if path.startswith("/a/") else None


@pytest.mark.parametrize("as_map", [False, True])
def test_bounds_of_delete_files_that_are_gone_move_or_are_dropped(as_map):
    record = bounds(b"/a/1", b"/a/9", as_map=as_map)
    change_record(record, None, moved)
    found = [*record["lower_bounds"].values()] if as_map else record["lower_bounds"]
    values = found if as_map else [one["value"] for one in found]
    assert sorted(values) == [b"\x01", b"/b/1"]

    # cut to some characters, as others do: less than the prefix, or more
    cut = bounds(b"/", b"0", as_map=as_map)
    change_record(cut, None, moved)
    for name in ("lower_bounds", "upper_bounds"):
        left = cut[name] if as_map else {one["key"]: one["value"] for one in cut[name]}
        assert [*left.values()] == [b"\x01"]
