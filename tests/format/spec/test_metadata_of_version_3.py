"""Metadata files of format version 3: row ids, encryption keys, fields of several columns."""

import copy
import json
import random

import pytest

from icecomb.format.errors import CorruptFileError, UnsupportedError, ValidationError
from icecomb.format.spec.metadata import TableMetadata
from icecomb.format.spec.metadata_file import check_table
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.spec.transform import IdentityTransform, UnknownTransform

KEY = {
    "key-id": "k1",
    "encrypted-key-metadata": "YWJj",
    "encrypted-by-id": "kek",
    "properties": {"KEY_TIMESTAMP": "1700000000000"},
}
SNAPSHOT = {
    "sequence-number": 3,
    "snapshot-id": 30,
    "parent-snapshot-id": 20,
    "timestamp-ms": 1700000000003,
    "summary": {"operation": "append"},
    "manifest-list": "/t/metadata/snap-30.avro",
    "schema-id": 0,
    "first-row-id": 1000,
    "added-rows": 375,
    "key-id": "k1",
}


def document(**members):
    """Return a file of version 3 as the specification describes it, by hand."""
    return copy.deepcopy(
        {
            "format-version": 3,
            "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
            "location": "/t",
            "last-sequence-number": 3,
            "last-updated-ms": 1700000000003,
            "last-column-id": 2,
            "current-schema-id": 0,
            "schemas": [
                {
                    "type": "struct",
                    "schema-id": 0,
                    "fields": [
                        {"id": 1, "name": "x", "required": True, "type": "long"},
                        {"id": 2, "name": "y", "required": False, "type": "long"},
                    ],
                }
            ],
            "default-spec-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "last-partition-id": 999,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": {},
            "current-snapshot-id": 30,
            "next-row-id": 1375,
            "encryption-keys": [KEY],
            "refs": {"main": {"snapshot-id": 30, "type": "branch"}},
            # older than the upgrade: no row ids
            "snapshots": [
                {
                    "sequence-number": 2,
                    "snapshot-id": 20,
                    "timestamp-ms": 1700000000002,
                    "summary": {"operation": "append"},
                    "manifest-list": "/t/metadata/snap-20.avro",
                },
                SNAPSHOT,
            ],
            "statistics": [],
            "partition-statistics": [],
            "snapshot-log": [],
            "metadata-log": [],
            **members,
        }
    )


def parsed(raw):
    return TableMetadata.from_json(json.dumps(raw))


def test_row_ids_and_keys_are_read_and_written_back():
    metadata = parsed(document())
    assert (metadata.next_row_id, metadata.encryption_keys) == (1375, (KEY,))
    older, newer = metadata.snapshots
    assert (older.first_row_id, older.added_rows, older.key_id) == (None, None, None)
    assert (newer.first_row_id, newer.added_rows, newer.key_id) == (1000, 375, "k1")
    assert json.loads(metadata.to_json()) == document()
    # as a value, too, not only as the text that was read
    assert [snapshot.to_json() for snapshot in metadata.snapshots] == document()["snapshots"]
    check_table(metadata)


@pytest.mark.parametrize("absent", [None, -1, "left out"])
def test_an_empty_table_has_no_current_snapshot(absent):
    raw = document(refs={}, snapshots=[], **{"current-snapshot-id": absent, "next-row-id": 0})
    if absent == "left out":
        del raw["current-snapshot-id"]
    metadata = parsed(raw)
    assert metadata.current_snapshot() is None
    assert json.loads(metadata.to_json())["current-snapshot-id"] is None


def test_an_unknown_member_of_version_2_named_next_row_id_is_kept():
    raw = document(snapshots=[], refs={}, **{"format-version": 2, "current-snapshot-id": -1})
    metadata = parsed(raw)
    assert (metadata.next_row_id, metadata.extra) == (0, {"next-row-id": 1375})
    assert json.loads(metadata.to_json()) == raw


def without(key):
    raw = document()
    del raw[key]
    return raw


def with_snapshot(**members):
    changed = {k: v for k, v in {**SNAPSHOT, **members}.items() if v != "left out"}
    return document(snapshots=[*document()["snapshots"][:1], changed])


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (without("next-row-id"), "'next-row-id' is missing"),
        (document(**{"next-row-id": -1}), "'next-row-id' is -1"),
        (document(**{"next-row-id": 2**63}), "not a 64-bit number"),
        (document(**{"next-row-id": "7"}), "not of type int"),
        (document(**{"next-row-id": 1374}), "up to 1375 .* beyond next-row-id 1374"),
        (document(**{"encryption-keys": [{"key-id": "k"}]}), "encrypted-key-metadata"),
        (document(**{"encryption-keys": ["k"]}), "encryption-keys"),
        (with_snapshot(**{"first-row-id": -1}), "first_row_id is -1"),
        (with_snapshot(**{"added-rows": -1}), "added_rows is -1"),
        (with_snapshot(**{"added-rows": "left out"}), "no added-rows"),
        (with_snapshot(**{"first-row-id": "1"}), "not of type int"),
        (with_snapshot(**{"key-id": 1}), "not of type str"),
    ],
)
def test_row_ids_that_cannot_be_are_refused_by_name(raw, named):
    with pytest.raises(CorruptFileError, match=named):
        parsed(raw)


def test_a_snapshot_names_its_rows_wholly_or_not_at_all():
    with pytest.raises(ValidationError, match="added-rows"):
        Snapshot(1, None, 1, 1, "/m", first_row_id=0)
    assert Snapshot(1, None, 1, 1, "/m", first_row_id=0, added_rows=0).to_json()["added-rows"] == 0


SEVERAL = {"name": "xy", "transform": "bucket[4]", "source-ids": [1, 2], "field-id": 1000}
SEVERAL_SORTED = {
    "transform": "zorder",
    "source-ids": [1, 2],
    "direction": "asc",
    "null-order": "nulls-first",
}


def ordered(field, key):
    return document(
        **{
            "partition-specs": [{"spec-id": 0, "fields": [field]}],
            "last-partition-id": 1000,
            "sort-orders": [{"order-id": 1, "fields": [key]}],
            "default-sort-order-id": 1,
        }
    )


def test_fields_of_several_columns_are_unknown_transforms_and_written_back():
    metadata = parsed(ordered(SEVERAL, SEVERAL_SORTED))
    (field,) = metadata.spec().fields
    assert field.transform == UnknownTransform("bucket[4]")
    assert (field.to_json(), metadata.sort_order().fields[0].to_json()) == (SEVERAL, SEVERAL_SORTED)
    check_table(metadata)


def test_one_source_of_a_list_is_read_as_the_source_and_kept():
    one = {"name": "x", "transform": "identity", "source-ids": [2], "field-id": 1000}
    (field,) = parsed(ordered(one, {**SEVERAL_SORTED, "source-ids": [1]})).spec().fields
    assert (field.source_id, field.transform) == (2, IdentityTransform())
    # with the member that readers of all versions know
    assert field.to_json() == {**one, "source-id": 2}


@pytest.mark.parametrize("sources", [[], ["1", 2], [1, None], 1])
def test_sources_that_are_no_columns_are_refused(sources):
    with pytest.raises(CorruptFileError, match="source-id"):
        parsed(ordered({**SEVERAL, "source-ids": sources}, SEVERAL_SORTED))


def test_fields_of_several_columns_belong_to_version_3():
    raw = {**ordered(SEVERAL, SEVERAL_SORTED), "format-version": 2}
    with pytest.raises(UnsupportedError, match="v3"):
        parsed(raw)


def nodes(value, at=()):
    """Yield the place of each value in a JSON document."""
    yield at
    if isinstance(value, (dict, list)):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from nodes(child, (*at, key))


def read_or_refused(text):
    """Return metadata that is written back as it was read; None if it is refused by name."""
    try:
        metadata = TableMetadata.from_json(text, "/t/metadata/3.json")
    except (CorruptFileError, UnsupportedError) as error:
        named = "/t/metadata/3.json" in error.message and error.hint
        return None if named else error
    again = TableMetadata.from_json(metadata.to_json())
    return metadata if again == metadata else "read otherwise"


WHOLE = ordered(SEVERAL, SEVERAL_SORTED)
ODD = [None, True, -1, 2**63, 1.5, "", "x", [], [None], {}, {"x": 1}, "left out"]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_a_file_with_one_wrong_value_is_read_or_refused_by_name(odd):
    read = 0
    for at in nodes(WHOLE):
        raw = copy.deepcopy(WHOLE)
        if not at:
            raw = odd
        else:
            parent = raw
            for key in at[:-1]:
                parent = parent[key]
            if odd == "left out":
                del parent[at[-1]]
            else:
                parent[at[-1]] = odd
        found = read_or_refused(json.dumps(raw))
        assert found is None or isinstance(found, TableMetadata)
        read += found is not None
    assert 0 < read < len(list(nodes(WHOLE)))


@pytest.mark.seeds(400, gate=20)
def test_a_file_with_wrong_bytes_is_read_or_refused_by_name(seed):
    drawn = random.Random(seed)
    whole = json.dumps(WHOLE).encode()
    for _ in range(50):
        damaged = bytearray(whole)
        for _ in range(drawn.randint(1, 3)):
            at = drawn.randrange(len(damaged))
            kind = drawn.randrange(3)
            if kind == 0:
                damaged[at] = drawn.randrange(256)
            elif kind == 1:
                del damaged[at : at + drawn.randint(1, 9)]
            else:
                damaged[at:at] = drawn.choice([b"9", b"-", b'"', b"[", b"}", b"null", b"\xff"])
        found = read_or_refused(bytes(damaged))
        assert found is None or isinstance(found, TableMetadata)
