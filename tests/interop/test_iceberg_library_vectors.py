"""Deletion vectors of icecomb and of Iceberg Java's library on one table: one vector a file, rows exact."""

from __future__ import annotations

import json
import struct
from dataclasses import replace

import pyarrow as pa
import pytest

from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import IntegerType, LongType, NestedField
from tests.rings import sampled

SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "k", IntegerType())))
BY_K = [("identity", "k", "k")]
ON_READ = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}


def frame(*ids):
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "k": pa.array([i % 2 for i in ids], pa.int32())}
    )


def rows(first, last):
    return [[i, i % 2] for i in range(first, last)]


def vectors(table, branch="main"):
    """The vectors of a branch, by data file; no file has two."""
    found = {}
    head = table.refresh().metadata.snapshot_by_name(branch)
    for manifest in read_manifests(table.io, head):
        for entry in read_manifest(table.io, manifest):
            file = entry.data_file
            if entry.is_live and file.is_deletion_vector:
                assert file.referenced_data_file not in found
                found[file.referenced_data_file] = file
    return found


def agreed(library, name, but=()):
    """The ids that icecomb, Iceberg Java and PyIceberg find."""
    return sorted(row[0] for row in library.agree(name, but=but))


@pytest.mark.parametrize("file_format", sampled(("parquet", "orc", "avro"), keep=1))
def test_icecomb_and_java_delete_rows_of_the_same_files_by_turns(library, file_format):
    name = f"vectors_{file_format}"
    properties = {"format-version": "3", "write.format.default": file_format, **ON_READ}
    # PyIceberg 0.12 reads no Avro
    but = ["peer"] if file_format == "avro" else []
    java = library.create(name, SCHEMA, BY_K, properties)
    iceberg, table = library.iceberg, library.load(name)
    table.append(frame(*range(100)))
    iceberg.append(java, rows(100, 120))
    expected = set(range(120))

    table.refresh().delete("id in (3, 4, 7, 105)")
    expected -= {3, 4, 7, 105}
    assert agreed(library, name, but) == sorted(expected)
    assert len(vectors(table)) == 3

    iceberg.ask("delta", java, filter="id in (5, 6, 7, 106)")
    expected -= {5, 6, 106}
    assert agreed(library, name, but) == sorted(expected)
    assert sum(file.record_count for file in vectors(table).values()) == 7
    # one is still in the file of icecomb's first delete
    assert len(vectors(table)) == 4
    assert len({file.file_path for file in vectors(table).values()}) == 2

    table.upsert(frame(8, 9, 200), ["id"])  # equal rows stay as they are
    table.delete("id >= 90 and id < 100")
    expected = (expected | {200}) - set(range(90, 100))
    assert agreed(library, name, but) == sorted(expected)

    # a data file goes with its vector, by whomever it is removed
    table.delete("k = 1")
    expected = {i for i in expected if i % 2 == 0}
    assert agreed(library, name, but) == sorted(expected)
    left = vectors(table)
    assert all(file.partition == (0,) for file in left.values())
    iceberg.ask("delete", java, filter="k = 0")
    assert agreed(library, name, but) == []
    assert vectors(table) == {}


def test_position_deletes_of_version_2_become_vectors_for_both(library):
    name = "vectors_of_an_upgraded_table"
    java = library.create(name, SCHEMA, (), {"format-version": "2", **ON_READ})
    iceberg, table = library.iceberg, library.load(name)
    table.append(frame(*range(10)))
    table.append(frame(*range(10, 20)))
    iceberg.ask("delta", java, filter="id in (1, 11)", granularity="partition")
    table.refresh().delete("id = 12")
    table.transaction().upgrade_table_version(3).commit_transaction()
    expected = set(range(20)) - {1, 11, 12}
    # about one file each: those of partition granularity stay for the other one
    table.delete("id = 2")
    iceberg.ask("delta", java, filter="id = 13")
    expected -= {2, 13}
    assert agreed(library, name) == sorted(expected)
    assert {file.record_count for file in vectors(table).values()} == {2, 3}

    result = table.maintenance.rewrite_position_delete_files()
    assert (result.rewritten_delete_files_count, result.added_delete_files_count) == (1, 0)
    assert agreed(library, name) == sorted(expected)
    iceberg.ask("delta", java, filter="id = 14")
    assert agreed(library, name) == sorted(expected - {14})
    # each rewrites data files with vectors of the other
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert vectors(table) == {}
    assert agreed(library, name) == sorted(expected - {14})
    table.delete("id = 15")
    iceberg.ask("compact", java)
    assert vectors(table) == {}
    assert agreed(library, name) == sorted(expected - {14, 15})


def counted(table, branch):
    """The counts in the summary of a branch's head."""
    summary = table.metadata.snapshot_by_name(branch).summary
    begins = ("added-", "removed-", "deleted-", "total-", "changed-")
    return {key: value for key, value in summary.items() if key.startswith(begins)}


def footer(content):
    """What the footer of a Puffin file says, but for who made it."""
    (length,) = struct.unpack("<i", content[-12:-8])
    found = json.loads(content[-12 - length : -12])
    return found["blobs"], {**found["properties"], "created-by": ""}


def test_the_bytes_of_a_puffin_file_are_those_of_java(library):
    """Runs, scattered positions and dense ones, in several containers."""
    name = "bytes_of_vectors"
    java = library.create(name, SCHEMA, (), {"format-version": "3", **ON_READ})
    iceberg, table = library.iceberg, library.load(name)
    table.append(frame(*range(300_000)))
    where = (
        "(id >= 65000 and id < 70000) or (id >= 140000 and id < 200000 and k = 1) "
        "or id in (0, 3, 7, 262143, 262144)"
    )
    start = table.refresh().current_snapshot().snapshot_id
    for branch in ("ours", "theirs"):
        table.manage_snapshots().create_branch(start, branch).commit()
        table.refresh()
    table.delete(where, branch="ours")
    iceberg.ask("delta", java, filter=where, branch="theirs")
    table.refresh()
    (ours,), (theirs,) = (vectors(table, branch).values() for branch in ("ours", "theirs"))
    assert ours.record_count == 5000 + 30_000 + 5
    same = {"file_path": "", "file_size_in_bytes": 0}
    assert replace(ours, **same) == replace(theirs, **same)
    own, other = (table.io.read(file.file_path) for file in (ours, theirs))
    end = ours.content_offset + ours.content_size_in_bytes
    assert own[:end] == other[:end]
    assert footer(own) == footer(other)
    assert counted(table, "ours") == counted(table, "theirs")
    assert counted(table, "ours")["added-dvs"] == "1"
