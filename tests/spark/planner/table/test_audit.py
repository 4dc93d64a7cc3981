"""Where the planner lets changes go that are to be audited first; the statements are in Spark's tests."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from icecomb.format.errors import CommitFailedError, ValidationError
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField

BRANCH = {"wap_id": None, "wap_branch": "audit"}
STAGED = {"wap_id": "load", "wap_branch": None}


@pytest.fixture
def table(catalog):
    name = ("planner_tests", f"audit_{uuid.uuid4().hex}")
    schema = Schema((NestedField(1, "id", LongType()),))
    return catalog.create_table(name, schema, properties={"write.wap.enabled": "true"})


def begin(planner, table, operation, audit, loaded=None):
    loaded = loaded or planner.load(table.identifier[1], audit=audit)
    return planner.ask(
        "begin_write",
        reference=loaded["reference"],
        operation=operation,
        audit=audit,
        command="update",
    )


def test_where_a_change_goes_is_decided_when_it_begins(planner, table):
    table.append(pa.table({"id": [1]}))
    main = table.current_snapshot().snapshot_id
    begun = {
        key: begin(planner, table, "append", audit)["write"]
        for key, audit in (("branch", BRANCH), ("staged", STAGED))
    }
    assert (begun["branch"]["branch"], begun["branch"]["wap_id"]) == ("audit", None)
    assert (begun["staged"]["branch"], begun["staged"]["wap_id"]) == ("main", "load")
    assert {write["snapshot_id"] for write in begun.values()} == {main}
    # the owner's change of mind comes too late for a change that was to be audited
    with table.refresh().update_properties() as update:
        update.set("write.wap.enabled", "false")
    for write in begun.values():
        write["operation"] = "overwrite"
        planner.ask("commit_write", write=write, files=[])
    refs = table.refresh().refs()
    assert refs["main"].snapshot_id == main
    assert table.scan().use_ref("audit").count() == 0
    assert table.snapshots()[-1].summary["wap.id"] == "load"


def test_rows_that_were_read_elsewhere_are_not_replaced_on_the_branch(planner, table):
    table.append(pa.table({"id": [1]}))
    loaded = planner.load(table.identifier[1])
    table.append(pa.table({"id": [2]}), branch="audit")
    on_branch = planner.load(table.identifier[1], audit=BRANCH)
    assert on_branch["version"] != loaded["version"]
    with pytest.raises(CommitFailedError, match=r"spark\.wap\.branch was changed"):
        begin(planner, table, "replace_files", {"wap_id": None, "wap_branch": None}, on_branch)
    assert begin(planner, table, "replace_files", BRANCH, on_branch)["write"]["branch"] == "audit"


def test_a_delete_begins_its_branch_and_changes_nothing_of_an_empty_table(planner, table):
    loaded = planner.load(table.identifier[1])
    planner.ask("delete_where", reference=loaded["reference"], filters=[], audit=BRANCH)
    assert table.refresh().refs() == {}
    with pytest.raises(ValidationError, match="both WAP ID and branch"):
        planner.ask(
            "delete_where",
            reference=loaded["reference"],
            filters=[],
            audit=BRANCH | {"wap_id": "x"},
        )


def test_a_table_is_another_one_for_sessions_that_see_another_branch(planner, table):
    def seen(audit=None, name=None, **more):
        loaded = planner.load(
            name or table.identifier[1], **({"audit": audit} if audit else {}), **more
        )
        return loaded["identity"]

    uuid = str(table.metadata.table_uuid)
    on_audit = seen(BRANCH)
    assert uuid == seen() == seen(STAGED) == seen({"wap_id": None, "wap_branch": "main"})
    assert on_audit == f"{uuid}, branch audit"
    table.append(pa.table({"id": [1]}))
    with table.manage_snapshots() as manage:
        manage.create_branch(table.current_snapshot().snapshot_id, "audit")
    assert (seen(), seen(BRANCH)) == (uuid, on_audit)
    # who names a state sees that one, whatever the session says
    number = str(table.refresh().current_snapshot().snapshot_id)
    assert seen(BRANCH, version=number) == uuid
    with table.refresh().update_properties() as update:
        update.set("write.wap.enabled", "false")
    assert seen(BRANCH) == uuid
