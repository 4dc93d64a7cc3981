"""Databases of a metastore as namespaces: what can be set, and what the metastore makes of it."""

from __future__ import annotations

import getpass
import os
from typing import Any

import pytest

from icecomb.format.errors import NamespaceNotEmptyError, NoSuchNamespaceError, ValidationError

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
