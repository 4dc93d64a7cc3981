"""What a change refuses of what others committed meanwhile: the rules of Iceberg Java's validation.

Each case is one interleaving: a change is planned, another writer commits, the change is applied to
the table as it is then. The same pairs as statements of Spark: `tests/spark/test_isolation.py`.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

from icecomb.format.errors import ConflictError, ValidationError
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.overwrite import (
    DeleteFiles,
    OverwriteFiles,
    ReplacePartitions,
    RewriteFiles,
)
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.row_changes.merge import merge_rows
from icecomb.format.row_changes.merge_clause import Action, Clause, MergeClauses, MergeCondition
from icecomb.format.row_changes.row_level_change import (
    delete_rows,
    overwrite_rows,
    replace_partitions,
)
from icecomb.format.row_changes.table_append import append_rows
from icecomb.format.row_changes.upsert import upsert_rows
from icecomb.format.row_changes.write_target import WriteTarget
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.change.update import (
    AddSchemaUpdate,
    Changes,
    SetCurrentSchemaUpdate,
    SetSnapshotRefUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import LongType, NestedField, StringType
from icecomb.format.storage.file_io import FileIO
from tests.format.commit import commit
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

IO = FileIO()
Row: TypeAlias = tuple[int, str, int]
FIELDS = (
    NestedField(1, "id", LongType()),
    NestedField(2, "k", StringType()),
    NestedField(3, "v", LongType()),
)
SPEC = PartitionSpec(0, (PartitionField(2, 1000, IdentityTransform(), "k"),))
ARROW = pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
A, B = [(1, "a", 0), (2, "a", 0), (3, "a", 0)], [(11, "b", 0), (12, "b", 0)]
"""A file of partition ``a``, and one of ``b``."""
MAIN, AUDIT = "main", "audit"
LEVELS = ("serializable", "snapshot")
ON_READ = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "merge")}

# What becomes of a change when another writer did this meanwhile:
#   .  it commits        s  it is refused where it is serializable        x  it is refused
# The columns, and what Iceberg Java validates there (`newAppend`, `newOverwrite`, ...):
#   append      nothing
#   overwrite   no conflicting deletes; serializable: no conflicting data (the whole partition)
#   on write    the same about the rows of a filter, and no new deletes for the replaced files
#   delete      a row delta: its data files exist, but `delete` snapshots may have removed them;
#               serializable: no conflicting data files
#   update      a row delta: its data files exist, no conflicting delete files; serializable: ...
#   compact     replaced files exist, no new deletes for them
#   pinned      likewise, equality deletes passed over: the new files keep their sequence number
#   drop        nothing (a delete of all that matches, by metadata)
#   remove      the named file exists
#   insert      a row delta of rows that were missing, as a MERGE of Spark adds them that only inserts;
#               serializable: no conflicting data or delete files, and none removed but by a rewrite
#   relies      an append of rows that were missing, in Python; serializable: no conflicting data files,
#               and the files that have the others of its keys exist, without new deletes
MATRIX = """
                            append  overwrite  on_write  delete  update  compact  pinned  drop  remove  insert  relies
add rows                    .       s          s         s       s       .        .       .     .       s       s
add rows out of reach       .       s          .         .       .       .        .       .     .       .       .
add rows elsewhere          .       .          .         .       .       .        .       .     .       .       .
replace the partition       .       x          x         x       x       x        x       .     x       s       s
write the file anew         .       x          x         x       x       x        x       .     x       s       s
delete a row by position    .       x          x         .       x       x        x       .     .       s       s
delete a row by value       .       x          x         .       x       x        .       .     .       s       s
delete a row elsewhere      .       .          .         .       .       .        .       .     .       .       .
remove the file             .       x          x         .       x       x        x       .     x       s       s
remove a file elsewhere     .       .          .         .       .       .        .       .     .       .       .
compact the file            .       x          x         x       x       x        x       .     x       .       s
compact a file elsewhere    .       .          .         .       .       .        .       .     .       .       .
add a column                .       .          .         .       .       .        .       .     .       .       .
"""


def expected():
    """What is said of each pair of a row and a column."""
    columns, *rows = MATRIX.strip().splitlines()
    names = columns.split()
    said = {}
    for row in rows:
        other, marks = row[:26].strip(), row[26:].split()
        said |= {(other, name): mark for name, mark in zip(names, marks, strict=True)}
    return said


SAID = expected()
IN_VERSION_3 = {
    **SAID,
    # vectors are not merged, and one of a file that is gone would be left alone
    ("delete a row by position", "delete"): "x",
    ("remove the file", "delete"): "x",
}
"""What is said of each pair where rows are deleted by deletion vectors."""


def frame(rows) -> pa.Table:
    columns = zip(zip(*rows, strict=True), ARROW.types, strict=True)
    return pa.table([pa.array(values, of) for values, of in columns], ARROW)


def write(table, rows):
    return write_data(IO, table, frame(rows))


def file_of(table, branch, letter):
    """The only data file of a partition."""
    scan = TableScan(table, IO, parse(f"k = '{letter}'")).use_ref(branch)
    (task,) = scan.plan_files()
    return task.file


def told(table, **properties):
    return replace(table, properties={**table.properties, **properties})


def target(table, branch, **properties):
    return WriteTarget(IO, told(table, **properties), branch)


# ---- what others do -------------------------------------------------------------------------


def adding(*rows):
    return lambda t, branch: append_rows(target(t, branch), frame(rows))


def deleting(where, **properties):
    return lambda t, branch: delete_rows(target(t, branch, **properties), parse(where))


def deleting_by_value(table, branch):
    writer = EqualityDeleteWriter(IO, table, uuid.uuid4().hex, ["id"])
    writer.write(frame(A[:1]).to_batches()[0])
    (file,) = writer.close()
    return RowDelta(IO, branch=branch).add_deletes(file)


def compacting(letter, rows, *, pinned=False):
    def compact(table, branch):
        change = RewriteFiles(IO, branch=branch)
        number = table.snapshot_by_name(branch).sequence_number if pinned else None
        change.validate_from_snapshot(table.snapshot_by_name(branch).snapshot_id)
        old = file_of(table, branch, letter)
        return change.rewrite_files([old], write(table, rows), sequence_number=number)

    return compact


class AddedColumn:
    """A change of the table's columns."""

    def __init__(self, table, _branch):
        field = NestedField(table.last_column_id + 1, "more", StringType())
        self.schema = Schema((*table.schema().fields, field), schema_id=1)

    def apply(self, _):
        return Changes((), (AddSchemaUpdate(self.schema), SetCurrentSchemaUpdate()))


def without(*ids):
    return lambda rows: [row for row in rows if row[0] not in ids]


def more(*added):
    return lambda rows: [*rows, *added]


def replaced(*added):
    """Of the partition only these are left."""
    return lambda rows: [*(row for row in rows if row[1] != "a"), *added]


# each with what it leaves of the rows; the bounds of what is added first are around rows 1 and 5
OTHERS = {
    "add rows": (adding((0, "a", 0), (9, "a", 0)), more((0, "a", 0), (9, "a", 0))),
    "add rows out of reach": (adding((50, "a", 0)), more((50, "a", 0))),
    "add rows elsewhere": (adding((14, "b", 0)), more((14, "b", 0))),
    "replace the partition": (
        lambda t, branch: overwrite_rows(target(t, branch), frame([(6, "a", 6)]), parse("k = 'a'")),
        replaced((6, "a", 6)),
    ),
    "write the file anew": (deleting("id = 2"), without(2)),
    "delete a row by position": (deleting("id = 2", **ON_READ), without(2)),
    "delete a row by value": (deleting_by_value, without(1)),
    "delete a row elsewhere": (deleting("id = 12", **ON_READ), without(12)),
    "remove the file": (deleting("k = 'a'"), without(1, 2, 3)),
    "remove a file elsewhere": (deleting("k = 'b'"), without(11, 12)),
    "compact the file": (compacting("a", A), list),
    "compact a file elsewhere": (compacting("b", B), list),
    "add a column": (AddedColumn, list),
}


# ---- the changes ----------------------------------------------------------------------------

FIVE = (5, "a", 5)
NEW = [(1, "a", 7), (5, "a", 7)]
ONE = "k = 'a' AND id = 1"


def adds_five(change, table):
    for file in write(table, [FIVE]):
        change.append_data_file(file)
    return change


def fast_append(table, branch):
    return adds_five(FastAppend(IO, branch=branch), table)


def overwrite_without_checks(table, branch):
    change = OverwriteFiles(IO, branch=branch).overwrite_by_row_filter("k = 'a'")
    change.validate_from_snapshot(table.snapshot_by_name(branch).snapshot_id)
    return adds_five(change, table)


def replace_without_checks(table, branch):
    change = ReplacePartitions(IO, branch=branch)
    change.validate_from_snapshot(table.snapshot_by_name(branch).snapshot_id)
    return adds_five(change, table)


def overwrite_by_filter(table, branch):
    """As INSERT ... REPLACE WHERE of Spark is checked."""
    change = overwrite_without_checks(table, branch).validate_no_conflicting_deletes()
    if WriteTarget(IO, table).is_serializable("delete"):
        change.validate_no_conflicting_data()
    return change


def update(table, branch):
    change, _ = upsert_rows(target(table, branch), frame(NEW[:1]), ["id", "k"], insert=False)
    return change


def upsert(table, branch):
    change, _ = upsert_rows(target(table, branch), frame(NEW), ["id", "k"])
    return change


def merge(table, branch):
    clauses = MergeClauses((Clause(Action.UPDATE),), (Clause(Action.INSERT),))
    keys = MergeCondition((("id", "id"), ("k", "k")))
    change, _ = merge_rows(target(table, branch), frame(NEW), keys, clauses)
    return change


def insert_missing(table, branch):
    change = RowDelta(IO, branch=branch)
    if WriteTarget(IO, table).is_serializable("merge"):
        change.validate_from_snapshot(table.snapshot_by_name(branch).snapshot_id)
        change.conflict_detection_filter("k = 'a' AND id < 6")
        change.validate_no_conflicting_data_files().validate_no_conflicting_delete_files()
        change.validate_no_removed_data_files()
    for file in write(table, [FIVE]):
        change.add_rows(file)
    return change


def insert_by_key(table, branch):
    """What is there of the keys stays as it is."""
    change, _ = upsert_rows(target(table, branch), frame([A[0], FIVE]), ["id", "k"], update=False)
    return change


def insert_by_clause(table, branch):
    clauses = MergeClauses((), (Clause(Action.INSERT),))
    keys = MergeCondition((("id", "id"), ("k", "k")))
    change, _ = merge_rows(target(table, branch), frame([A[0], FIVE]), keys, clauses)
    return change


def remove_named(table, branch):
    change = DeleteFiles(IO, branch=branch).delete_data_file(file_of(table, branch, "a"))
    return change.validate_files_exist()


@dataclass(frozen=True)
class Change:
    """A change, its column of the matrix, and what it makes of the rows that others left."""

    column: str
    plan: Callable[[TableMetadata, str], Any]
    makes: Callable[[list[Row]], list[Row]]
    properties: Mapping[str, str] = field(default_factory=dict)


def updated(rows):
    return [(*row[:2], 7) if row[0] == 1 else row for row in rows]


def merged(rows):
    return [*updated(rows), NEW[1]]


def those_seen_replaced(rows):
    """Rows that others add to the partition under snapshot isolation stay."""
    return [*without(1, 2, 3)(rows), FIVE]


CHANGES = {
    "append": Change("append", adding(FIVE), more(FIVE)),
    "fast append": Change("append", fast_append, more(FIVE)),
    "overwrite without checks": Change("append", overwrite_without_checks, replaced(FIVE)),
    "replace partitions without checks": Change("append", replace_without_checks, replaced(FIVE)),
    "replace partitions": Change(
        "overwrite",
        lambda t, branch: replace_partitions(target(t, branch), frame([FIVE])),
        replaced(FIVE),
    ),
    "overwrite": Change(
        "overwrite",
        lambda t, branch: overwrite_rows(target(t, branch), frame([FIVE]), parse("k = 'a'")),
        those_seen_replaced,
    ),
    "overwrite by filter": Change("overwrite", overwrite_by_filter, replaced(FIVE)),
    "delete whole files": Change("overwrite", deleting("k = 'a'"), without(1, 2, 3)),
    "delete on write": Change("on_write", deleting(ONE), without(1)),
    "update on write": Change("on_write", update, updated),
    "upsert on write": Change("on_write", upsert, merged),
    "merge on write": Change("on_write", merge, merged),
    "delete on read": Change("delete", deleting(ONE), without(1), ON_READ),
    "update on read": Change("update", update, updated, ON_READ),
    "upsert on read": Change("update", upsert, merged, ON_READ),
    "merge on read": Change("update", merge, merged, ON_READ),
    "compact": Change("compact", compacting("a", A), list),
    "compact, pinned": Change("pinned", compacting("a", A, pinned=True), list),
    "drop": Change(
        "drop",
        lambda _, branch: DeleteFiles(IO, branch=branch).delete_by_predicate("k = 'a'"),
        replaced(),
    ),
    "remove": Change("remove", remove_named, without(1, 2, 3)),
    "insert missing": Change("insert", insert_missing, more(FIVE)),
    "upsert that inserts": Change("relies", insert_by_key, more(FIVE)),
    "merge that inserts": Change("relies", insert_by_clause, more(FIVE), ON_READ),
}


# ---- the table ------------------------------------------------------------------------------


class Lake:
    """One table, and what others make of it, each made once: metadata never changes."""

    def __init__(self, folder, version=2):
        self.said = SAID if version < 3 else IN_VERSION_3
        properties = {"format-version": str(version), "commit.manifest-merge.enabled": "false"}
        empty = new_table_metadata(
            Schema(FIELDS), SPEC, UNSORTED_SORT_ORDER, str(folder), properties
        )
        table = commit(empty, adding(*A, *B)(empty, MAIN))
        ref = SetSnapshotRefUpdate(AUDIT, "branch", table.current_snapshot_id)
        self.base = update_table_metadata(table, (ref,))
        self.after = functools.cache(self._after)

    def _after(self, other, branch):
        return commit(self.base, OTHERS[other][0](self.base, branch))


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return Lake(tmp_path_factory.mktemp("conflicts"))


@pytest.fixture(scope="module")
def lake_of_version_3(tmp_path_factory):
    return Lake(tmp_path_factory.mktemp("conflicts_of_vectors"), 3)


def rows_of(table, branch):
    scan = TableScan(table, IO, selected_fields=("id", "k", "v")).use_ref(branch)
    return sorted(tuple(row.values()) for row in scan.to_arrow().to_pylist())


def check(lake, name, other, level, *, branch=MAIN, others_branch=MAIN):
    """The change commits, or is refused, as the matrix says; no row is lost or there twice."""
    change = CHANGES[name]
    properties = {f"write.{each}.isolation-level": level for each in ("delete", "merge")}
    properties |= change.properties
    planned = change.plan(told(lake.base, **properties), branch)
    now = told(lake.after(other, others_branch), **properties)
    said = lake.said[other, change.column] if branch == others_branch else "."
    if said == "x" or (said == "s" and level == "serializable"):
        winner = now.snapshot_by_name(branch).snapshot_id
        with pytest.raises(ValidationError, match=f"snapshot {winner} ") as caught:
            planned.apply(now)
        assert isinstance(caught.value, ConflictError)
        assert caught.value.context["snapshot_ids"] == (winner,)
        planned.clean_up(None)
        assert rows_of(now, branch) == sorted(OTHERS[other][1]([*A, *B]))
    else:
        left = OTHERS[other][1]([*A, *B]) if branch == others_branch else [*A, *B]
        assert rows_of(commit(now, planned), branch) == sorted(change.makes(left))


def levels(said):
    """What snapshot isolation refuses, the stricter level refuses; what that lets pass, the other does."""
    return {"x": LEVELS[1:], ".": LEVELS[:1], "s": LEVELS}[said]


HARMFUL = ("add rows", "write the file anew", "delete a row by position")
FIRST_OF_COLUMNS = tuple(
    {change.column: name for name, change in [*CHANGES.items()][::-1]}.values()
)


def only_full(name, *others):
    """The gate has the first change of each column, and of the others what harms most."""
    if name in FIRST_OF_COLUMNS or (others and {*others} <= {*HARMFUL}):
        return pytest.param(name, *others)
    return pytest.param(name, *others, marks=pytest.mark.full("its column is in the gate"))


PAIRS = [only_full(change, other) for change in CHANGES for other in OTHERS]


@pytest.mark.parametrize(("change", "other"), PAIRS)
def test_a_change_beside_another_writer_is_refused_as_in_iceberg_java(lake, change, other):
    for level in levels(SAID[other, CHANGES[change].column]):
        check(lake, change, other, level)


@pytest.mark.parametrize(
    ("change", "other"),
    [
        (change, other)
        if other == "delete a row by position" and change.endswith("on read")
        else pytest.param(change, other, marks=pytest.mark.full("as in version 2, but for vectors"))
        for change in CHANGES
        for other in OTHERS
    ],
)
def test_in_version_3_the_same_is_refused_and_vectors_of_one_data_file(
    lake_of_version_3, change, other
):
    lake = lake_of_version_3
    for level in levels(lake.said[other, CHANGES[change].column]):
        check(lake, change, other, level)


@pytest.mark.parametrize("change", [only_full(change) for change in CHANGES])
def test_on_a_branch_the_same_is_refused_and_what_happens_to_another_is_not(lake, change):
    for other in HARMFUL:
        check(lake, change, other, "serializable", branch=AUDIT, others_branch=AUDIT)
    for branch, elsewhere in ((AUDIT, MAIN), (MAIN, AUDIT)):
        check(lake, change, HARMFUL[1], "serializable", branch=branch, others_branch=elsewhere)


def test_the_matrix_says_something_of_every_pair():
    assert {other for other, _ in SAID} == {*OTHERS}
    assert {column for _, column in SAID} == {change.column for change in CHANGES.values()}
    assert {*SAID.values()} == {".", "s", "x"}
