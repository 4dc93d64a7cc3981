"""Which delete files apply to nothing, by the rules of the specification (Scan Planning)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from icecomb.catalog import Table
from icecomb.format.inspect.file_census import CensusLimits, DanglingDeletes, take_census
from icecomb.format.maintenance.dangling_deletes import dangling_deletes
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.overwrite import DeleteFiles, RewriteFiles
from icecomb.format.operation.row_delta import RowDelta
from tests.catalog.health.made_table import (
    GB,
    KB,
    append,
    data,
    delete,
    equality,
    new_table,
    positions,
    vector,
)


def dangling(table: Table) -> int:
    """As many as the removal of such files finds, which makes values of them."""
    limits = CensusLimits(1)
    head = table.current_snapshot()
    assert head is not None
    manifests = read_manifests(table.io, head)
    found = take_census(table.metadata, table.io, manifests, limits).dangling
    assert found == DanglingDeletes(found.files, found.files * 10 * KB)
    assert found.files == len(dangling_deletes(table.io, table.metadata, head))
    return found.files


def planned(table: Table) -> set[str]:
    """The delete files that scans apply."""
    return {file.file_path for task in table.scan().plan_files() for file in task.delete_files}


def remove(table: Table, *files: DataFile) -> Table:
    operation = DeleteFiles(table.io)
    for file in files:
        operation.delete_data_file(file.file_path)
    return table.commit(operation)


@pytest.fixture
def mon() -> DataFile:
    return data(GB, day="mon")


@pytest.fixture
def table(tmp_path: Path, mon: DataFile) -> Table:
    return append(new_table(tmp_path, by_day=True), mon, data(GB, day="tue"))


def test_deletes_of_a_partition_dangle_when_its_files_are_gone(table: Table, mon: DataFile) -> None:
    delete(table, positions(1, day="mon"), positions(1, day="tue"), equality(1, day="mon"))
    assert (dangling(table), len(planned(table))) == (0, 3)
    remove(table, mon)
    assert (dangling(table), len(planned(table))) == (2, 1)


def test_position_deletes_apply_to_files_of_their_own_commit_equality_deletes_do_not(
    tmp_path: Path, table: Table, mon: DataFile
) -> None:
    delete(table, positions(1, day="mon"), equality(1, day="mon"))
    append(remove(table, mon), data(GB, day="mon"))
    assert dangling(table) == 2, "the new file is younger than both"
    other = new_table(tmp_path, "other", by_day=True)
    together = RowDelta(other.io).add_rows(data(GB, day="mon"))
    together.add_deletes(positions(1, day="mon")).add_deletes(equality(1, day="mon"))
    other.commit(together)
    assert dangling(other) == 1


def test_deletes_of_one_file_dangle_without_it_whatever_else_is_in_its_partition(
    table: Table, mon: DataFile
) -> None:
    delete(append(table, data(GB, day="mon")), positions(1, mon))
    assert dangling(table) == 0
    remove(table, mon)
    assert (dangling(table), planned(table)) == (1, set())


def test_position_deletes_of_one_file_dangle_beside_its_vector(table: Table, mon: DataFile) -> None:
    delete(table, positions(1, mon), positions(1, day="mon"))
    table.transaction().upgrade_table_version(3).commit_transaction()
    assert (dangling(table), len(planned(table))) == (0, 2)
    head = table.current_snapshot()
    assert head is not None
    added = RowDelta(table.io).validate_from_snapshot(head.snapshot_id)
    table.commit(added.add_deletes(vector(1, mon)))
    assert planned(table) == {"/t/data/vectors.puffin"}
    assert dangling(table) == 1, "those of the partition may be about other files"


def test_equality_deletes_of_a_spec_without_fields_apply_everywhere(tmp_path: Path) -> None:
    first = data(GB)
    table = append(new_table(tmp_path), first)
    with table.update_spec() as spec:
        spec.add_identity("day")
    append(table, data(GB, day="mon"))
    delete(table, equality(1), positions(1))
    remove(table, first)
    assert dangling(table) == 1, "position deletes are of their partition"
    remove(table, *[task.file for task in table.scan().plan_files()])
    assert dangling(table) == 2


def test_a_replaced_file_keeps_deletes_by_the_pinned_number_alive(
    table: Table, mon: DataFile
) -> None:
    before = table.metadata.last_sequence_number
    delete(table, equality(1, day="mon"))
    rewrite = RewriteFiles(table.io)
    rewrite.rewrite_files([mon], [data(GB, day="mon")], sequence_number=before)
    table.commit(rewrite)
    assert dangling(table) == 0


def test_null_is_a_partition_of_its_own(tmp_path: Path) -> None:
    table = new_table(tmp_path, by_day=True)
    null = data(GB, partition=(None,), spec_id=1)
    append(table, null, data(GB, day="mon"))
    delete(table, data_deletes(null))
    assert dangling(table) == 0
    remove(table, null)
    assert dangling(table) == 1


def data_deletes(like: DataFile) -> DataFile:
    return replace(positions(1), partition=like.partition, spec_id=like.spec_id)
