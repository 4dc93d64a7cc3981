from __future__ import annotations

import subprocess
import sys

import pytest

from icecomb.catalog.configuration import flag, load_configuration, number, seconds
from icecomb.catalog.identifier import database_and_table, database_of, parse_identifier
from icecomb.format.errors import (
    ConfigurationError,
    NoSuchNamespaceError,
    NoSuchTableError,
    ValidationError,
)


def test_arguments_win_over_the_environment_and_each_value_knows_its_source():
    environment = {
        "ICECOMB_CATALOG__LAKE__URI": "thrift://env:1",
        "ICECOMB_CATALOG__LAKE__ENGINE__HIVE__LOCK_ENABLED": "false",
        "ICECOMB_CATALOG__LAKE__table-default.write.x": "1",
        "ICECOMB_CATALOG__OTHER__URI": "thrift://other:1",
    }
    found = load_configuration("lake", {"uri": "thrift://arg:1", "warehouse": None}, environment)
    assert found.properties == {
        "uri": "thrift://arg:1",
        "engine.hive.lock-enabled": "false",
        "table-default.write.x": "1",
    }
    assert found.settings["uri"].source == "argument"
    assert (
        found.settings["engine.hive.lock-enabled"].source
        == "ICECOMB_CATALOG__LAKE__ENGINE__HIVE__LOCK_ENABLED"
    )


@pytest.mark.parametrize(
    ("given", "kind"),
    [({}, "local"), ({"uri": "thrift://h:1"}, "hive"), ({"type": "LOCAL", "uri": "x"}, "local")],
)
def test_the_type_is_what_is_said_else_follows_from_the_uri(given, kind):
    assert load_configuration("c", given, {}).type == kind


def test_an_unknown_type_is_refused():
    with pytest.raises(ConfigurationError, match="no catalog type 'rest'"):
        _ = load_configuration("c", {"type": "rest"}, {}).type


@pytest.mark.parametrize(
    ("text", "value"), [("300s", 300), ("300", 300), ("500ms", 0.5), ("5min", 300), ("1h", 3600)]
)
def test_durations_are_read_as_hive_writes_them(text, value):
    assert seconds(text) == value


def test_values_that_make_no_sense_are_refused():
    for act in (
        lambda: seconds("soon"),
        lambda: seconds("5 parsecs"),
        lambda: number({"k": "x"}, "k", 1),
        lambda: number({"k": "-1"}, "k", 1, least=0),
        lambda: flag({"k": "yes"}, "k", default=True),
    ):
        with pytest.raises(ConfigurationError):
            act()


def test_names_have_parts():
    assert parse_identifier("a.b") == ("a", "b")
    assert database_and_table(("A", "T")) == ("a", "t")
    assert database_of("A") == "a"
    with pytest.raises(ValidationError):
        parse_identifier("a..b")
    with pytest.raises(NoSuchTableError):
        database_and_table("a.b.c")
    with pytest.raises(NoSuchNamespaceError):
        database_of(())


def test_importing_the_catalog_loads_nothing_heavy():
    code = "import icecomb.catalog, sys; print(sorted({'thrift','hmsclient','pyarrow','polars','fastavro'} & {m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd="/", check=True
    )
    assert done.stdout.strip() == "[]"
