"""Tables of format version 3 that Iceberg Java's library and icecomb commit to by turns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.format.manifests.manifest import ManifestContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField, StringType

SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "s", StringType())))
MERGING = {"commit.manifest.min-count-to-merge": "2"}


def rows(first, last):
    return [[i, f"v{i}"] for i in range(first, last)]


def frame(first, last):
    return pa.table({"id": list(range(first, last)), "s": [f"v{i}" for i in range(first, last)]})


def row_ids(library, name):
    """Return the row ids of a table's files as Iceberg Java and icecomb read them, which agree.

    No row of the table has the id of another one, nor one that is still to be assigned.
    """
    java, table = library.name(name), library.load(name)
    theirs = library.iceberg.ask("manifests", java)
    ours = [
        {
            "path": manifest.manifest_path,
            "first_row_id": manifest.first_row_id,
            "files": {
                entry.data_file.file_path: entry.data_file.first_row_id
                for entry in manifest.fetch_manifest_entry(table.io)
            },
        }
        for manifest in read_manifests(table.io, table.current_snapshot())
        if manifest.content is ManifestContent.DATA
    ]
    assert ours == theirs
    said = library.iceberg.metadata(java)
    assert (said["format_version"], said["next_row_id"]) == (3, table.metadata.next_row_id)
    assert [(s["first_row_id"], s["added_rows"]) for s in said["snapshots"]] == [
        (s.first_row_id, s.added_rows) for s in table.snapshots()
    ]
    used = [
        row
        for file in library.files(name)
        for row in range(file.first_row_id, file.first_row_id + file.record_count)
    ]
    assert len(set(used)) == len(used)
    assert max(used) < table.metadata.next_row_id
    return {path: row_id for manifest in ours for path, row_id in manifest["files"].items()}


@pytest.mark.parametrize("made_by", ["icecomb", "Iceberg Java"])
def test_both_number_rows_by_turns_and_no_number_is_used_twice(library, made_by):
    name = f"numbered_by_{made_by.lower().replace(' ', '_')}"
    properties = {"format-version": "3", **MERGING}
    if made_by == "icecomb":
        library.catalog.create_table(library.own(name), SCHEMA, properties=properties)
    else:
        library.create(name, SCHEMA, properties=properties)
    java = library.name(name)
    known = {}
    steps = (
        lambda: library.load(name).append(frame(0, 3)),
        lambda: library.iceberg.append(java, rows(3, 5), fast=True),
        lambda: library.load(name).append(frame(5, 9)),
        lambda: library.iceberg.append(java, rows(9, 10)),
        lambda: library.load(name).maintenance.rewrite_manifests(),  # noqa: PLW0108
        lambda: library.load(name).append(frame(10, 12)),
        lambda: library.iceberg.ask("rewrite_manifests", java),
        lambda: library.load(name).append(frame(12, 13)),
    )
    for step in steps:
        step()
        found = row_ids(library, name)
        assert known.items() <= found.items()
        known = found
    assert sorted(row[0] for row in library.agree(name)) == list(range(13))


def test_merging_appends_use_up_ids(library):
    """As in `tests/format/operation/test_row_ids.py`."""
    java = library.create("merged_ids", SCHEMA, properties={"format-version": "3", **MERGING})
    for number in range(0, 10, 2):
        library.iceberg.append(java, rows(number, number + 2))
    row_ids(library, "merged_ids")
    assert library.load("merged_ids").metadata.next_row_id == 30


@pytest.mark.parametrize("upgraded_by", ["icecomb", "Iceberg Java"])
def test_the_first_commit_after_an_upgrade_numbers_the_older_rows(library, upgraded_by):
    name = f"upgraded_by_{upgraded_by.lower().replace(' ', '_')}"
    java = library.create(name, SCHEMA, properties={"format-version": "2"})
    library.iceberg.append(java, rows(0, 3), fast=True)
    library.load(name).append(frame(3, 7))
    if upgraded_by == "icecomb":
        library.load(name).update_properties().set("format-version", "3").commit()
        library.iceberg.append(java, rows(7, 8), fast=True)
    else:
        library.iceberg.ask("properties", java, properties={"format-version": "3"})
        library.load(name).append(frame(7, 8))
    assert sorted(row_ids(library, name).values()) == [0, 1, 5]
    assert library.load(name).metadata.next_row_id == 8
    assert sorted(row[0] for row in library.agree(name)) == list(range(8))
