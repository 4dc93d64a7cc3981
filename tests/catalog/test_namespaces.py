"""Databases of a metastore as namespaces: what can be set, and what the metastore makes of it."""

from __future__ import annotations

import getpass
import os
import time
import uuid
from typing import Any

import pytest

from icecomb.catalog.hive.server_examination import examine_server
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable, StorageDescriptor
from icecomb.catalog.hive.thrift.failure import ReplyLostError
from icecomb.catalog.hive.thrift.server import left_probes
from icecomb.format.errors import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    ValidationError,
)

OWNER, KIND = "hive.metastore.database.owner", "hive.metastore.database.owner-type"


def comment(catalog: Any, namespace: str) -> str | None:
    found: str | None = catalog.load_namespace_properties(namespace).get("comment")
    return found


def test_a_comment_is_set_changed_and_removed(catalog, namespace):
    """2.3.10 keeps the description of creation whatever is asked: the comment must show all the same."""
    assert comment(catalog, namespace) is None
    for text in ("first", "second"):
        catalog.update_namespace_properties(namespace, updates={"comment": text, "k": text})
        assert comment(catalog, namespace) == text
        assert catalog.load_namespace_properties(namespace)["k"] == text
    catalog.update_namespace_properties(namespace, updates={"k": "third"})
    assert comment(catalog, namespace) == "second"
    catalog.update_namespace_properties(namespace, removals=["comment"])
    assert comment(catalog, namespace) is None


def test_a_comment_given_at_creation_is_changed_and_removed(catalog):
    catalog.create_namespace("ns_comment", {"comment": "old"})
    try:
        assert comment(catalog, "ns_comment") == "old"
        catalog.update_namespace_properties("ns_comment", updates={"comment": "new"})
        assert comment(catalog, "ns_comment") == "new"
        catalog.update_namespace_properties("ns_comment", removals={"comment"})
        assert comment(catalog, "ns_comment") is None
        catalog.update_namespace_properties("ns_comment", updates={"comment": "again"})
        assert comment(catalog, "ns_comment") == "again"
    finally:
        catalog.drop_namespace("ns_comment")


@pytest.mark.full("needs Iceberg's Spark")
def test_iceberg_java_sees_a_comment_that_was_set_later(catalog, iceberg_java, namespace):
    catalog.update_namespace_properties(namespace, updates={"comment": "set later"})
    rows = dict(iceberg_java.sql(f"DESCRIBE NAMESPACE EXTENDED ice.{namespace}"))
    assert rows["Comment"] == "set later"


def test_an_owner_is_set_and_given_up_together_with_its_type(catalog, namespace):
    catalog.update_namespace_properties(namespace, updates={OWNER: "team", KIND: "group"})
    found = catalog.load_namespace_properties(namespace)
    assert (found[OWNER], found[KIND]) == ("team", "GROUP")
    for removals, updates in (
        ({OWNER}, {}),
        ({KIND}, {}),
        ((), {KIND: "USER"}),
        ((), {OWNER: "a", KIND: "CAT"}),
    ):
        with pytest.raises(ValidationError):
            catalog.update_namespace_properties(namespace, removals=removals, updates=updates)
    assert catalog.load_namespace_properties(namespace) == found
    catalog.update_namespace_properties(namespace, removals={OWNER, KIND})
    found = catalog.load_namespace_properties(namespace)
    assert (found[OWNER], found[KIND]) == (
        os.environ.get("HADOOP_USER_NAME") or getpass.getuser(),
        "USER",
    )


def test_the_location_stays(catalog, namespace):
    before = catalog.load_namespace_properties(namespace)
    for removals, updates in (((), {"location": "/x"}), ({"location"}, {})):
        with pytest.raises(ValidationError, match="location"):
            catalog.update_namespace_properties(namespace, removals=removals, updates=updates)
    assert catalog.load_namespace_properties(namespace) == before
    with pytest.raises(NoSuchNamespaceError):
        catalog.update_namespace_properties("nowhere", updates={"a": "b"})


def test_a_namespace_that_holds_something_is_not_dropped(catalog, namespace, table, rows):
    with pytest.raises(NamespaceNotEmptyError, match=namespace):
        catalog.drop_namespace(namespace)
    table.append(rows)
    assert table.refresh().scan().count() == 3


def left_view(namespace: str) -> HiveTable:
    """A view by which a metastore was tried that then went away."""
    return HiveTable(
        namespace,
        f"icecomb_probe_{uuid.uuid4().hex}",
        storage=StorageDescriptor(columns=(FieldSchema("nothing", "int"),)),
        parameters={"icecomb.probe": "before"},
        table_type="VIRTUAL_VIEW",
        view_original_text="SELECT 1 AS nothing",
        view_expanded_text="SELECT 1 AS nothing",
    )


def test_a_namespace_with_a_view_that_icecomb_left_is_dropped(catalog, monkeypatch):
    name = f"n{uuid.uuid4().hex[:10]}"
    catalog.create_namespace(name)
    view = left_view(name)
    catalog.client.create_table(view)
    hour = time.time() + 3700
    assert view.full_name in left_probes(catalog.client, hour)
    assert view.full_name not in left_probes(catalog.client, time.time())
    monkeypatch.setattr("icecomb.catalog.hive.server_examination.time.time", lambda: hour)
    assert any(view.full_name in each.message for each in examine_server(catalog))
    monkeypatch.undo()
    catalog.drop_namespace(name)
    assert (name,) not in catalog.list_namespaces()


def test_a_namespace_with_a_table_keeps_the_view_that_may_be_in_use(catalog, namespace, table):
    catalog.client.create_table(left_view(namespace))
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(namespace)
    assert len(catalog.client.table_names(namespace)) == 2


def test_a_lost_answer_about_a_namespace_is_looked_for(proxied, proxy):
    name = f"n{uuid.uuid4().hex[:10]}"
    proxy.fail("create_database", "reply")
    proxied.create_namespace(name, {"comment": "ours", "a": "b"})
    assert proxied.load_namespace_properties(name)["a"] == "b"
    proxy.fail("drop_database", "reply")
    proxied.drop_namespace(name)
    assert (name,) not in proxied.list_namespaces()


def test_what_did_not_happen_to_a_namespace_is_not_told_done(proxied, proxy, monkeypatch):
    monkeypatch.setitem(proxied.properties, "commit.status-check.num-retries", "1")
    monkeypatch.setitem(proxied.properties, "commit.status-check.min-wait-ms", "10")
    name = f"n{uuid.uuid4().hex[:10]}"
    proxy.fail("create_database", "request")
    with pytest.raises(ReplyLostError):
        proxied.create_namespace(name)
    proxied.create_namespace(name, {"a": "b"})
    proxy.fail("create_database", "request")
    with pytest.raises(NamespaceAlreadyExistsError, match="other properties"):
        proxied.create_namespace(name, {"a": "c"})
    proxy.fail("drop_database", "request")
    with pytest.raises(ReplyLostError):
        proxied.drop_namespace(name)
    proxied.drop_namespace(name)
