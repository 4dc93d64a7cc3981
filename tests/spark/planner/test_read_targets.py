"""Writes whose query has read the table that they write: what others do to that meanwhile."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.format.errors import (
    CommitFailedError,
    ConflictError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.rows.write.data_writer import write_data
from tests.spark.planner.protocol import NAMESPACE, Planner, named

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string())])
NAME = (*NAMESPACE, "t")
IN_A = {"op": "eq", "column": ["k"], "type": "string", "value": "a"}


def rows(*pairs):
    return pa.table([[p[0] for p in pairs], [p[1] for p in pairs]], SCHEMA)


BEFORE = rows((1, "a"), (2, "a"), (3, "b"))


@pytest.fixture
def planner(folders):
    return Planner.in_folders(folders)


def rolled_back(folders, planner):
    """A table, and a state of it with a row that was rolled back since."""
    table = folders.create_table(NAME, SCHEMA)
    table.append(BEFORE)
    first = table.current_snapshot().snapshot_id
    table.append(rows((7, "a")))
    old = planner.load("t")
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    return table, old


def ids(table, branch="main"):
    found = table.refresh().scan(selected_fields="id").use_ref(branch).to_arrow()
    return sorted(found["id"].to_pylist())


class Merge:
    """One that has read a table, and inserts a row of the key 5 that it has found missing.

    Its source has read the `queried` states of the table.
    """

    def __init__(
        self,
        planner,
        table,
        filters=(),
        name="t",
        written=(5, "a"),
        queried=(),
        read_by=None,
        **asked,
    ):
        self.planner = planner
        loaded = planner.load(name)
        begun = planner.ask(
            "begin_write",
            reference=loaded["reference"],
            **{"operation": "append", "command": "merge", "rows": loaded["schema"], **asked},
            queried=[
                {"reference": each["reference"], "options": read_by or {}} for each in queried
            ],
        )
        counts = {"partition": [], "split_offsets": [], "columns": "[]"}
        self.asked = {
            "write": begun["write"],
            "files": [
                {
                    "path": file.file_path,
                    "size": file.file_size_in_bytes,
                    "rows": file.record_count,
                    **counts,
                }
                for file in write_data(table.io, table.metadata, rows(written))
            ],
        }
        read = {
            "reference": loaded["reference"],
            "filters": None if filters is None else list(filters),
            "files": [],
        }
        if begun["write"]["operation"] == "replace_files":
            self.asked["replaced"] = read
        else:
            self.asked["delta"] = {**read, "deletes": []}

    def commit(self):
        self.planner.ask("commit_write", **self.asked)


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("before", [BEFORE, None], ids=["rows", "empty"])
def test_a_merge_that_only_inserts_is_refused_where_others_insert_what_it_missed(
    folders, planner, version, before
):
    table = folders.create_table(NAME, SCHEMA, properties={"format-version": version})
    if before is not None:
        table.append(before)
    first, second = Merge(planner, table), Merge(planner, table)
    first.commit()
    with pytest.raises(ConflictError, match="Found conflicting files") as refused:
        second.commit()
    inserted = table.refresh().current_snapshot()
    assert refused.value.context["snapshot_ids"] == (inserted.snapshot_id,)
    assert inserted.operation == "append"
    assert ids(table).count(5) == 1
    Merge(planner, table, written=(6, "a")).commit()
    assert ids(table)[-2:] == [5, 6]


def test_what_it_did_not_look_at_is_no_conflict(folders, planner):
    table = folders.create_table(NAME, SCHEMA)
    table.append(BEFORE)
    in_a, nothing = Merge(planner, table, [IN_A]), Merge(planner, table, None, written=(6, "a"))
    table.append(rows((5, "b")))
    in_a.commit()
    nothing.commit()
    assert ids(table) == [1, 2, 3, 5, 5, 6]


def test_it_is_refused_where_others_delete_rows_that_it_found(folders, planner):
    table = folders.create_table(NAME, SCHEMA)
    table.append(BEFORE)
    merge = Merge(planner, table)
    table.delete("id = 1")
    with pytest.raises(ConflictError):
        merge.commit()
    assert ids(table) == [2, 3]


def test_under_snapshot_isolation_it_is_an_append(folders, planner):
    table = folders.create_table(
        NAME, SCHEMA, properties={"write.merge.isolation-level": "snapshot"}
    )
    table.append(BEFORE)
    merge = Merge(planner, table)
    table.append(rows((5, "a")))
    merge.commit()
    assert ids(table) == [1, 2, 3, 5, 5]


def test_a_branch_is_looked_at_by_itself(folders, planner):
    table = folders.create_table(NAME, SCHEMA)
    table.append(BEFORE)
    with table.manage_snapshots() as manage:
        manage.create_branch(table.current_snapshot().snapshot_id, "audit")
    on_main = Merge(planner, table)
    table.append(rows((5, "a")), branch="audit")
    on_main.commit()
    assert ids(table) == ids(table, "audit") == [1, 2, 3, 5]


def test_options_cannot_send_it_to_another_branch_than_it_read(folders, planner):
    table = folders.create_table(NAME, SCHEMA)
    with pytest.raises(UnsupportedError, match="MERGE cannot change a branch that an option names"):
        Merge(planner, table, options={"branch": "audit"})


def test_nor_can_settings_that_change_while_it_runs(folders, planner):
    table = folders.create_table(NAME, SCHEMA, properties={"write.wap.enabled": "true"})
    table.append(BEFORE)
    with table.manage_snapshots() as manage:
        manage.create_branch(table.current_snapshot().snapshot_id, "audit")
    with pytest.raises(CommitFailedError, match="was changed while a statement read table"):
        Merge(planner, table, audit={"wap_id": None, "wap_branch": "audit"})


# a MERGE that only inserts; one that changes rows, by deletes and by files that are written anew
OPERATIONS = pytest.mark.parametrize("operation", ["append", "change_rows", "replace_files"])


@OPERATIONS
@pytest.mark.parametrize("level", ["serializable", "snapshot"])
@pytest.mark.parametrize("before", [BEFORE, None], ids=["rows", "empty"])
def test_a_change_is_refused_whose_source_lacks_what_others_added(
    folders, planner, operation, level, before
):
    table = folders.create_table(NAME, SCHEMA, properties={"write.merge.isolation-level": level})
    if before is not None:
        table.append(before)
    old = planner.load("t")
    table.append(rows((7, "a")))
    for queried in ([old], [planner.load("t"), old], [old, planner.load("t")]):
        with pytest.raises(ConflictError, match="Found conflicting files") as refused:
            Merge(planner, table, queried=queried, operation=operation).commit()
        assert "REFRESH TABLE" in refused.value.hint
    assert 5 not in ids(table)
    Merge(planner, table, queried=[planner.load("t")], operation=operation).commit()
    assert ids(table)[-2:] == [5, 7]


@pytest.mark.parametrize(
    ("operation", "command"),
    [
        ("append", "merge"),
        ("change_rows", "merge"),
        ("change_rows", "delete"),
        ("replace_files", "merge"),
        ("replace_files", "delete"),
    ],
)
def test_a_change_is_refused_whose_source_has_what_others_deleted(
    folders, planner, operation, command
):
    table = folders.create_table(NAME, SCHEMA)
    table.append(BEFORE)
    old = planner.load("t")
    table.delete("id = 1")
    with pytest.raises(ConflictError):
        Merge(planner, table, queried=[old], operation=operation, command=command).commit()
    assert ids(table) == [2, 3]


@OPERATIONS
def test_what_others_did_where_a_change_does_not_look_is_no_conflict(folders, planner, operation):
    table = folders.create_table(NAME, SCHEMA)
    table.append(BEFORE)
    old = planner.load("t")
    table.append(rows((7, "b")))
    Merge(planner, table, [IN_A], queried=[old], operation=operation).commit()
    assert ids(table) == [1, 2, 3, 5, 7]


@OPERATIONS
def test_a_source_that_asks_for_the_past_is_no_older_state(folders, planner, operation):
    table = folders.create_table(NAME, SCHEMA)
    table.append(BEFORE)
    first = str(table.current_snapshot().snapshot_id)
    table.append(rows((7, "a")))
    past, old = planner.load("t", version=first), planner.load("t")
    table.append(rows((8, "a")))
    Merge(planner, table, queried=[past], operation=operation).commit()
    by_option = {"queried": [old], "read_by": {"snapshot-id": first}}
    Merge(planner, table, operation=operation, **by_option).commit()
    assert ids(table) == [1, 2, 3, 5, 5, 7, 8]


@OPERATIONS
def test_a_source_that_was_rolled_back_is_refused(folders, planner, operation):
    table, old = rolled_back(folders, planner)
    with pytest.raises(ValidationError, match="Cannot determine the history"):
        Merge(planner, table, queried=[old], operation=operation).commit()
    assert ids(table) == [1, 2, 3]


def test_what_it_staged_is_published_only_onto_what_it_has_read(folders, planner):
    table = folders.create_table(NAME, SCHEMA, properties={"write.wap.enabled": "true"})
    table.append(BEFORE)
    for number in (5, 6):
        audit = {"wap_id": f"load {number}", "wap_branch": None}
        Merge(planner, table, audit=audit, written=(number, "a")).commit()
    table.refresh().publish_changes("load 5")
    with pytest.raises(ValidationError, match="depend on the rows that the table had when"):
        table.publish_changes("load 6")
    assert ids(table) == [1, 2, 3, 5]


def replacement(planner, *read):
    """The request that replaces the table by an empty one, made of these states of it."""
    staged = planner.ask(
        "stage_table",
        catalog=planner.catalog,
        operation="create_or_replace",
        definition={
            "table": named("t"),
            "schema": planner.load("t")["schema"],
            "partitioning": [],
            "properties": {},
        },
    )
    return {"reference": staged["reference"], "read": [each["reference"] for each in read]}


@pytest.mark.parametrize("before", [BEFORE, None], ids=["rows", "empty"])
@pytest.mark.parametrize("staged_first", [False, True], ids=["read first", "staged first"])
def test_a_table_is_not_replaced_by_rows_of_it_that_lack_what_others_added(
    folders, planner, before, staged_first
):
    table = folders.create_table(NAME, SCHEMA)
    if before is not None:
        table.append(before)
    old = planner.load("t")
    request = replacement(planner, old) if staged_first else None
    table.append(rows((7, "a")))
    with pytest.raises(ConflictError, match=f"snapshot {table.current_snapshot().snapshot_id} "):
        planner.ask("commit_staged", **(request or replacement(planner, old)))
    assert ids(table)[-1] == 7
    planner.ask("commit_staged", **replacement(planner, planner.load("t")))
    assert table.refresh().current_snapshot() is None


def test_who_has_read_nothing_or_the_past_replaces_what_is_there(folders, planner):
    table = folders.create_table(NAME, SCHEMA)
    table.append(BEFORE)
    past = planner.load("t", version=str(table.current_snapshot().snapshot_id))
    for read in ((), (past,)):
        request = replacement(planner, *read)
        table.refresh().append(rows((7, "a")))
        planner.ask("commit_staged", **request)
        assert table.refresh().current_snapshot() is None


@pytest.mark.parametrize("by", ["name", "version"])
def test_rows_of_another_branch_are_those_that_it_has(folders, planner, by):
    table = folders.create_table(NAME, SCHEMA)
    table.append(BEFORE)
    with table.manage_snapshots() as manage:
        manage.create_branch(table.current_snapshot().snapshot_id, "audit")
        manage.create_tag(table.current_snapshot().snapshot_id, "kept")
    named_so = {"table": {"namespace": [*NAMESPACE, "t"], "name": "branch_audit"}}
    old = planner.load("t", **(named_so if by == "name" else {"version": "audit"}))
    request = replacement(planner, planner.load("t", version="kept"), old)
    table.append(rows((7, "a")), branch="audit")
    with pytest.raises(ConflictError, match="its branch 'audit'"):
        planner.ask("commit_staged", **request)
    assert ids(table) == [1, 2, 3]


class Overwrite:
    """INSERT OVERWRITE of a table by rows that come from these states of it, which has key 6 then."""

    def __init__(self, planner, table, *queried, target=None, options=None, **asked):
        self.planner = planner
        loaded = target or planner.load("t")
        begun = planner.ask(
            "begin_write",
            reference=loaded["reference"],
            operation="overwrite",
            filters=[{"op": "always_true"}],
            rows=loaded["schema"],
            queried=[
                {"reference": each["reference"], "options": options or {}} for each in queried
            ],
            **asked,
        )
        counts = {"partition": [], "split_offsets": [], "columns": "[]"}
        files = [
            {
                "path": file.file_path,
                "size": file.file_size_in_bytes,
                "rows": file.record_count,
                **counts,
            }
            for file in write_data(table.io, table.metadata, rows((6, "a")))
        ]
        self.asked = {"write": begun["write"], "files": files}

    def commit(self):
        self.planner.ask("commit_write", **self.asked)


@pytest.mark.parametrize("before", [BEFORE, None], ids=["rows", "empty"])
def test_rows_are_not_replaced_by_those_of_an_older_state_that_lacks_what_others_added(
    folders, planner, before
):
    table = folders.create_table(NAME, SCHEMA)
    if before is not None:
        table.append(before)
    old = planner.load("t")
    table.append(rows((7, "a")))
    for queried in ([old], [planner.load("t"), old], [old, planner.load("t")]):
        with pytest.raises(ConflictError, match="Found conflicting files"):
            Overwrite(planner, table, *queried).commit()
        assert 7 in ids(table)
    Overwrite(planner, table, planner.load("t")).commit()
    assert ids(table) == [6]


def test_rows_that_were_rolled_back_since_they_were_read_do_not_come_back(folders, planner):
    table, old = rolled_back(folders, planner)
    with pytest.raises(ValidationError, match="Cannot determine the history"):
        Overwrite(planner, table, old).commit()
    assert ids(table) == [1, 2, 3]


def test_a_newer_state_than_the_write_began_with_is_no_older_one(folders, planner):
    table = folders.create_table(NAME, SCHEMA)
    table.append(BEFORE)
    target = planner.load("t")
    table.append(rows((7, "a")))
    with pytest.raises(ConflictError, match="Found conflicting files"):
        Overwrite(planner, table, planner.load("t"), target=target).commit()
    assert ids(table) == [1, 2, 3, 7]


@pytest.mark.parametrize("by", ["version", "snapshot-id", "tag", "branch", "name", "files"])
def test_who_asks_for_the_past_or_another_branch_replaces_what_is_there(folders, planner, by):
    table = folders.create_table(NAME, SCHEMA)
    table.append(BEFORE)
    first = table.current_snapshot().snapshot_id
    with table.manage_snapshots() as manage:
        manage.create_branch(first, "audit").create_tag(first, "kept")
    options, more = {}, {}
    if by == "version":
        more = {"version": str(first)}
    elif by in {"name", "files"}:
        part = "branch_audit" if by == "name" else "files"
        more = {"table": {"namespace": [*NAMESPACE, "t"], "name": part}}
    else:
        options = {by: {"snapshot-id": str(first), "tag": "kept", "branch": "audit"}[by]}
    old = planner.load("t", **more)
    table.append(rows((7, "a")))
    Overwrite(planner, table, old, options=options).commit()
    assert ids(table) == [6]


@pytest.mark.parametrize("there", [True, False], ids=["there", "made"])
def test_a_branch_is_overwritten_from_what_it_showed_when_it_was_read(folders, planner, there):
    table = folders.create_table(NAME, SCHEMA, properties={"write.wap.enabled": "true"})
    table.append(BEFORE)
    audit = {"wap_id": None, "wap_branch": "audit"}
    if there:
        with table.manage_snapshots() as manage:
            manage.create_branch(table.current_snapshot().snapshot_id, "audit")
    old = planner.load("t", audit=audit)
    table.append(rows((7, "a")), branch="audit" if there else "main")
    with pytest.raises(ConflictError, match="Found conflicting files"):
        Overwrite(planner, table, old, audit=audit).commit()
    Overwrite(planner, table, planner.load("t", audit=audit), audit=audit).commit()
    assert ids(table, "audit") == [6]
