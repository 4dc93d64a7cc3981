"""Texts that the metastore's own database cannot hold are named, with their lengths."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog.hive.thrift.entity import (
    FieldSchema,
    HiveDatabase,
    HiveTable,
    StorageDescriptor,
)
from icecomb.catalog.hive.thrift.failure import RefusedError
from icecomb.catalog.hive.thrift.length_limits import named_limits, named_lock_limits

COLUMNS = 'Add request failed : INSERT INTO COLUMNS_V2 (CD_ID,"COMMENT") VALUES (?,?)'
PARAMETERS = (
    'JDODataStoreException: Put request failed : INSERT INTO "TABLE_PARAMS" ("PARAM_VALUE")'
)
LONG = HiveTable(
    "m",
    "t",
    storage=StorageDescriptor(
        columns=(FieldSchema("a", "int", "x" * 300), FieldSchema("b" * 800, "s" * 5000)),
    ),
    parameters={"note": "v" * 40_000},
)


def refusal(answer: str) -> RefusedError:
    return RefusedError("refused", kind="MetaException", answer=answer, uri="thrift://h:9083")


@pytest.mark.parametrize(
    ("answer", "told", "untold"),
    [
        (COLUMNS, ["comment of column a has 300", "holds 256", "800", "5,000"], ["note"]),
        (PARAMETERS, ["property note has 40,000 characters"], ["column"]),
        ("value too long for type character varying(256)", ["300", "800", "5,000", "…"], []),
    ],
)
def test_what_is_too_long_is_named(answer, told, untold):
    with pytest.raises(RefusedError) as raised, named_limits(LONG):
        raise refusal(answer)
    assert all(words in raised.value.message for words in told), raised.value.message
    assert not any(words in raised.value.message for words in untold)
    assert (raised.value.kind, raised.value.answer) == ("MetaException", answer)


@pytest.mark.parametrize("answer", ["no rights to INSERT", COLUMNS])
def test_other_refusals_stay_as_they_are(answer):
    entity = HiveDatabase("m", "about") if answer == COLUMNS else LONG
    error = refusal(answer)
    with pytest.raises(RefusedError) as raised, named_limits(entity):
        raise error
    assert raised.value is error


def test_a_lock_is_refused_for_the_length_of_a_name():
    error = refusal("Internal error processing lock")
    with (
        pytest.raises(RefusedError, match="a name has 129 characters"),
        named_lock_limits("m", "n" * 129),
    ):
        raise error
    with pytest.raises(RefusedError) as raised, named_lock_limits("m", "n" * 128):
        raise error
    assert raised.value is error


def changes(catalog, namespace):
    """Yield what is too long, and a change with it."""
    table = catalog.create_table(f"{namespace}.t", pa.schema([("a", pa.int64())]))

    def rename_property(length):
        with table.transaction() as change:
            change.set_properties({"p" * length: "v"})

    yield "property p", lambda: rename_property(300)
    yield (
        "the name of column",
        lambda: catalog.create_table(f"{namespace}.c", pa.schema([("a" * 800, pa.int64())])),
    )
    yield "namespace's name", lambda: catalog.create_namespace("n" * 129)
    yield "namespace's comment", lambda: catalog.create_namespace("nc", {"comment": "c" * 5000})
    yield "property q", lambda: catalog.create_namespace("np", {"q": "v" * 5000})


def test_the_metastore_holds_no_such_texts(catalog, namespace):
    table = catalog.create_table(f"{namespace}.t", pa.schema([("a", pa.int64())]))
    with (
        pytest.raises(RefusedError, match="the comment of column a has 300"),
        table.update_schema() as change,
    ):
        change.update_column("a", doc="x" * 300)
    with pytest.raises(RefusedError, match="a name has 129 characters"):
        catalog.create_table(f"{namespace}.{'n' * 129}", table.schema())
    sql = f"SELECT 1 AS a /* {'x' * 100_000} */"
    with pytest.raises(RefusedError, match=r"the view's SQL has 100,0\d\d characters"):
        catalog.create_view(f"{namespace}.v", table.schema(), {"spark": sql})
    assert catalog.list_tables(namespace) == [table.identifier]
    table.append(pa.table({"a": [1]}))
    assert table.scan().count() == 1


@pytest.mark.full("metastores answer in words of their own, after attempts that take time")
@pytest.mark.parametrize("version", ["2.3.10", "3.1.3", "4.0.1"])
def test_nothing_that_is_too_long_is_left_half_done(hive_catalogs, version):
    catalog = hive_catalogs[version]
    catalog.create_namespace("limits")
    for what, change in changes(catalog, "limits"):
        with pytest.raises(RefusedError, match=what):
            change()
    catalog.load_table("limits.t").append(pa.table({"a": [1]}))
