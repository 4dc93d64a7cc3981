"""An error that says all is printed alone: no thrift, no file system above it."""

from __future__ import annotations

import traceback

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.errors import (
    IcecombError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ValidationError,
)

SCHEMA = pa.schema([("id", pa.int64())])

MISTAKES = {
    "a missing table": (lambda c, n: c.load_table(f"{n}.nope"), NoSuchTableError),
    "a missing table to drop": (lambda c, n: c.drop_table(f"{n}.nope"), NoSuchTableError),
    "a missing table to rename": (
        lambda c, n: c.rename_table(f"{n}.nope", f"{n}.x"),
        NoSuchTableError,
    ),
    "a missing namespace": (lambda c, _: c.list_tables("nope"), NoSuchNamespaceError),
    "a missing namespace to drop": (lambda c, _: c.drop_namespace("nope"), NoSuchNamespaceError),
    "a table in a missing namespace": (
        lambda c, _: c.create_table("nope.t", SCHEMA),
        NoSuchNamespaceError,
    ),
    "a missing view": (lambda c, n: c.load_view(f"{n}.nope"), NoSuchViewError),
    "a namespace that is there": (lambda c, n: c.create_namespace(n), NamespaceAlreadyExistsError),
    "a namespace that is not empty": (lambda c, n: c.drop_namespace(n), NamespaceNotEmptyError),
    "a table that is there": (
        lambda c, n: c.create_table(f"{n}.t", SCHEMA),
        TableAlreadyExistsError,
    ),
}


def printed(call, *args):
    """What Python prints of the error."""
    try:
        call(*args)
    except IcecombError as error:
        return type(error), "".join(traceback.format_exception(error))
    pytest.fail("nothing was refused")


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.usefixtures("table")
def test_one_traceback_on_a_metastore(catalog, namespace, mistake):
    call, expected = MISTAKES[mistake]
    kind, text = printed(call, catalog, namespace)
    assert issubclass(kind, expected)
    assert text.count("Traceback") == 1, text


@pytest.mark.parametrize(
    "mistake", [m for m in MISTAKES if "view" not in m and "rename" not in m and "to drop" not in m]
)
def test_one_traceback_on_folders(tmp_path, mistake):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    catalog.create_table("db.t", SCHEMA)
    call, expected = MISTAKES[mistake]
    kind, text = printed(call, catalog, "db")
    assert issubclass(kind, expected)
    assert text.count("Traceback") == 1, text


@pytest.mark.parametrize("value", [None, b"x", "\ud800"])
def test_a_property_of_a_namespace_that_is_no_text_is_refused_by_name(catalog, namespace, value):
    for properties in ({"k": value}, {"comment": value}):
        with pytest.raises(ValidationError, match=r"[Pp]roperty of a namespace"):
            catalog.create_namespace("other", properties)
        with pytest.raises(ValidationError, match=r"[Pp]roperty of a namespace"):
            catalog.update_namespace_properties(namespace, updates=properties)
    with pytest.raises(ValidationError, match="Name of a property"):
        catalog.update_namespace_properties(namespace, updates={5: "x"})
    assert not catalog.namespace_exists("other")


def test_numbers_among_the_properties_of_a_namespace_become_text(catalog, namespace):
    catalog.update_namespace_properties(namespace, updates={"n": 5, "on": True})
    found = catalog.load_namespace_properties(namespace)
    assert (found["n"], found["on"]) == ("5", "true")
