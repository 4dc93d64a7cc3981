"""Signatures of procedures: read from functions, and arguments bound to them."""

from __future__ import annotations

from typing import Any

import pytest

from icecomb.format.errors import ValidationError
from icecomb.format.sql_statement import quoted_name
from icecomb.spark.planner.procedures.call import Call, parse_name
from icecomb.spark.planner.procedures.procedure_calls import find
from icecomb.spark.planner.procedures.signature import procedure


@procedure(
    "table! string, when! timestamp, dry_run boolean = true, ids array<bigint>, "
    "names array<string>, options map<string,string> -> text string, note string?"
)
def example(call: Call, **given: Any) -> list[tuple[str, None]]:
    """Do nothing.

    Not shown.
    """
    return [(given["table"], None)]


def test_a_declaration_is_the_procedure_s():
    assert example.description == "Do nothing."
    assert example.signature() == (
        "example(table string, when timestamp, [dry_run boolean], [ids array<bigint>], "
        "[names array<string>], [options map<string,string>])"
    )
    assert [(one.name, one.required) for one in example.columns] == [
        ("text", True),
        ("note", False),
    ]


def test_arguments_are_bound_by_position_then_by_name_in_any_case():
    bound = example.bind([(None, "t"), (None, 7), ("IDS", [1, 2]), ("Options", {"a": "b"})])
    assert bound == {
        "table": "t",
        "when": 7,
        "dry_run": True,
        "ids": (1, 2),
        "names": None,
        "options": {"a": "b"},
    }
    assert example.bind([("when", 1), ("table", "t"), ("dry_run", None)])["dry_run"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([(None, "t")], "when is missing"),
        ([(None, None), (None, 1)], "table is null"),
        ([(None, "t"), (None, 1), ("table", "u")], "table is given twice"),
        ([("table", "t"), ("TABLE", "u"), ("when", 1)], "table is given twice"),
        ([("table", "t"), (None, 1)], "by position come before"),
        ([(None, "t"), (None, 1), ("where", "x")], "no argument where"),
        ([(None, "t"), (None, 1), *[(None, None)] * 5], "takes 6 arguments at most"),
        ([(None, "t"), (None, "now")], "when is timestamp, not 'now'"),
        ([(None, 1), (None, 1)], "table is string, not 1"),
        ([(None, "t"), (None, True)], "when is timestamp, not True"),
        ([(None, "t"), (None, 1), ("ids", [1, None])], r"ids is array<bigint>, not null"),
        (
            [(None, "t"), (None, 1), ("options", {"a": None})],
            r"options is map<string,string>, not null",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_name(arguments, message):
    with pytest.raises(ValidationError, match=message) as caught:
        example.bind(arguments)
    assert caught.value.hint.startswith("Call it as example(table string")


def test_an_unknown_procedure_is_refused_with_the_nearest_one():
    assert find(("SYSTEM",), "Expire_Snapshots").name == "expire_snapshots"
    with pytest.raises(ValidationError, match=r"no procedure system\.expire_snapshot") as caught:
        find(("system",), "expire_snapshot")
    assert caught.value.hint == "Did you mean system.expire_snapshots?"
    with pytest.raises(ValidationError, match=r"no procedure db\.migrate"):
        find(("db",), "migrate")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("t", ("t",)),
        ("db.t", ("db", "t")),
        ("`a.b`.`c``d`", ("a.b", "c`d")),
        ("`parquet`.`/a b/c=1`", ("parquet", "/a b/c=1")),
    ],
)
def test_a_name_has_parts_and_backquotes(text, parts):
    assert parse_name(text) == parts
    assert parse_name(quoted_name(*parts)) == parts


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "a b", "`a", "``", "a`b`"])
def test_what_is_no_name_is_refused(text):
    with pytest.raises(ValidationError, match="is not a table name"):
        parse_name(text)


class Lake:
    """As much of a catalog as names need."""

    name = "lake"
    properties = {"uri": "thrift://A:9083,thrift://b:9083"}  # noqa: RUF012


NO_SESSION: Any = None


def no_rows(statement):
    raise AssertionError(statement)


def test_a_table_is_found_as_iceberg_finds_it():
    call = Call(Lake(), ("now",), NO_SESSION, no_rows, "thrift://a:9083")
    assert call.identifier("t") == ("now", "t")
    assert call.identifier("db.t") == ("db", "t")
    assert call.identifier("lake.db.t") == ("db", "t")
    assert call.source("spark_catalog.db.t") == ("db", "t")
    for text in ("lake.t", "other.db.t", "spark_catalog.db.t", "a.b.c.d"):
        with pytest.raises(ValidationError, match="is not a table of catalog lake"):
            call.identifier(text)


@pytest.mark.parametrize("metastore", [None, "thrift://c:9083"])
def test_spark_s_own_tables_are_taken_of_the_same_metastore_only(metastore):
    call = Call(Lake(), ("now",), NO_SESSION, no_rows, metastore)
    with pytest.raises(ValidationError, match="not in the metastore of catalog lake"):
        call.source("spark_catalog.db.t")
