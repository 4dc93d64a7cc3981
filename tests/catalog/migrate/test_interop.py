"""`apply --interop`: what each engine needs on the table, and `icecomb doctor`, which looks for it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from icecomb.catalog import migrate
from icecomb.catalog.hive.catalog import HiveCatalog
from icecomb.catalog.hive.engine import examine_engines
from icecomb.catalog.report.finding import Severity
from icecomb.format.errors import ConfigurationError, UnsupportedError, ValidationError
from icecomb.format.sql_statement import quoted_name
from tests.catalog.migrate.conftest import AVRO
from tests.rings import sampled

HANDLER = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"
INPUT = "org.apache.iceberg.mr.hive.HiveIcebergInputFormat"
PLAIN = "org.apache.hadoop.mapred.FileInputFormat"
ALL = "hive,spark,trino,impala"


@pytest.fixture
def hive_table(make_hive_table: Any) -> Any:
    return make_hive_table({"id": "bigint"}, rows=pa.table({"id": [1, 2]}))


@pytest.fixture
def run(icecomb: Any) -> Any:
    """Runs `icecomb --output json ...`: exit code, what it says, stderr."""

    def run(*arguments: str) -> tuple[int, Any, str]:
        code, out, err = icecomb(*arguments, form="json")
        return code, json.loads(out) if out else None, err

    return run


@pytest.fixture
def doctor(run: Any) -> Any:
    """The findings of `icecomb doctor TABLE` about engines, and its exit code."""

    def doctor(name: str) -> tuple[int, list[tuple[str, str, str | None]]]:
        code, said, _ = run("doctor", name)
        about = [one for one in said["findings"] if one["subject"] == "engines"]
        return code, [(one["level"], one["message"], one["remedy"]) for one in about]

    return doctor


def own(table: Any) -> dict[str, str]:
    """The properties that say something of engines."""
    properties = table.catalog.load_table(table.name).properties
    return {k: v for k, v in properties.items() if k in {"icecomb.interop", "engine.hive.enabled"}}


@pytest.mark.parametrize(
    ("wanted", "kept", "by_handler"),
    sampled(
        [
            ((), ALL, True),
            (("--interop", "hive"), "hive", True),
            (("--interop", "Trino, spark"), "spark,trino", False),
            (("--interop", "impala,trino"), "trino,impala", True),
        ],
        keep=2,
    ),
)
def test_engines_get_what_they_need_and_nothing_else(
    hive_table: Any, run: Any, doctor: Any, wanted: Any, kept: str, by_handler: Any
) -> None:
    """HiveTableOperations and IcebergTable.isIcebergTable say by what Hive and Impala know a table."""
    assert run("migrate", "apply", hive_table.name, *wanted)[0] == 0
    needed = {"engine.hive.enabled": "true"} if by_handler else {}
    assert own(hive_table) == {"icecomb.interop": kept, **needed}
    entry = hive_table.entry
    assert (entry.parameters.get("storage_handler") == HANDLER) == by_handler
    assert entry.storage.input_format == (INPUT if by_handler else PLAIN)
    assert entry.parameters["table_type"] == "ICEBERG"
    said = f"the table has what they need: {kept.replace(',', ', ')}"
    assert doctor(hive_table.name) == (0, [("ok", said, None)])
    assert [row["id"] for row in hive_table.rows()] == [1, 2]


def test_a_second_table_is_made_for_the_same_engines(hive_table: Any, run: Any) -> None:
    new = f"{hive_table.name}_new"
    assert run("migrate", "apply", hive_table.name, "--as", new, "--interop", "hive,spark")[0] == 0
    try:
        entry = hive_table.catalog.client.table(*new.split("."))
        assert entry.parameters["icecomb.interop"] == "hive,spark"
        assert entry.parameters["storage_handler"] == HANDLER
        assert "icecomb.interop" not in hive_table.entry.parameters
    finally:
        hive_table.catalog.drop_table(new)


@pytest.mark.parametrize("command", ["plan", "apply"])
@pytest.mark.parametrize("wanted", ["flink", "hive,", ""])
def test_what_is_no_engine_is_refused_and_nothing_is_changed(
    hive_table: Any, run: Any, command: str, wanted: str
) -> None:
    before = hive_table.state
    code, _, err = run("migrate", command, hive_table.name, "--interop", wanted)
    assert code == 1
    assert "one or more of hive, spark, trino and impala" in err
    assert hive_table.state == before
    with pytest.raises(ConfigurationError, match=r"icecomb\.interop cannot be"):
        migrate.snapshot(hive_table.catalog, hive_table.name, "made.never", interop=wanted)
    assert not hive_table.catalog.table_exists("made.never")


@pytest.mark.parametrize("by_table", [True, False])
def test_who_excludes_hives_engine_excludes_those_that_need_it(
    make_hive_table: Any, metastore: Any, by_table: Any
) -> None:
    """A property of table or catalog is a choice that the default respects, and no name overrides the table's."""
    no = {"engine.hive.enabled": "false"}
    place = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
    catalog = HiveCatalog("interop", {**place, **({} if by_table else no)})
    try:
        table = make_hive_table(
            {"id": "bigint"}, rows=pa.table({"id": [1]}), parameters=no if by_table else {}
        )
        if by_table:
            before = table.state
            with pytest.raises(ValidationError, match="excludes hive and impala"):
                migrate.apply(catalog, table.name, interop=["impala", "spark", "hive"])
            assert table.state == before
        migrate.apply(catalog, table.name)
        assert own(table)["icecomb.interop"] == "spark,trino"
        assert "storage_handler" not in table.entry.parameters
        if not by_table:  # a name that is given goes before the catalog's setting
            migrate.revert(catalog, table.name, dry_run=False)
            migrate.apply(catalog, table.name, interop="hive")
            assert table.entry.parameters["storage_handler"] == HANDLER
    finally:
        catalog.close()


def test_the_list_is_given_by_its_option_and_not_as_a_property(hive_table: Any) -> None:
    before = hive_table.state
    with pytest.raises(ValidationError, match=r"icecomb\.interop is set by the migration itself"):
        migrate.apply(hive_table.catalog, hive_table.name, properties={"icecomb.interop": "hive"})
    assert hive_table.state == before


def test_the_plan_says_what_follows_from_the_list(hive_table: Any, run: Any) -> None:
    told = {}
    for wanted in ("hive", "trino"):
        _, said, _ = run("migrate", "plan", hive_table.name, "--interop", wanted)
        [readers] = [one for one in said["findings"] if one["code"] == "readers"]
        told[wanted] = [place for place in readers["places"] if place.startswith("Hive: ")]
    assert told["hive"][0].startswith("Hive: as before from version 4 on")
    assert told["trino"][0].startswith("Hive: not at all, nor older Impalas; `apply --interop hive")


def follow(table: Any, run: Any, remedy: str) -> None:
    """Do what a remedy says: a command of ours, or a statement that sets or unsets a property."""
    if remedy.startswith("icecomb "):
        assert run(*remedy.removeprefix("icecomb ").split(), "--yes")[0] == 0
        return
    found = re.search(
        r"ALTER TABLE (\S+) (SET|UNSET) TBLPROPERTIES \('([^']+)'(?:='(.*)')?\)", remedy
    )
    assert found
    assert found[1] == quoted_name(*table.name.split("."))
    with table.catalog.load_table(table.name).update_properties() as update:
        if found[2] == "SET":
            update.set(found[3], found[4])
        else:
            update.remove(found[3])


def lose_property(table: Any) -> None:
    with table.catalog.load_table(table.name).update_properties() as update:
        update.remove("engine.hive.enabled")


def lose_handler(table: Any) -> None:
    """As a writer does that does not know the property."""
    entry = table.entry
    parameters = {k: v for k, v in entry.parameters.items() if k != "storage_handler"}
    table.catalog.client.alter_table(*table.name.split("."), replace(entry, parameters=parameters))


def lose_formats(table: Any) -> None:
    entry = table.entry
    storage = replace(entry.storage, input_format=PLAIN)
    table.catalog.client.alter_table(*table.name.split("."), replace(entry, storage=storage))


def other_name(table: Any) -> None:
    """IcebergTable.verifyTable of Impala: an entry that says another name is another table's."""
    with table.catalog.load_table(table.name).update_properties() as update:
        update.set("name", "made.another")


@pytest.mark.parametrize(
    ("lose", "message"),
    sampled(
        [
            (
                lose_property,
                "hive and impala cannot read it: the table's property engine.hive.enabled",
            ),
            (lose_handler, "hive and impala cannot read it: the entry lacks"),
            (lose_formats, "hive and impala cannot read it: the entry lacks"),
            (other_name, "impala takes it for another table: its property name is 'made.another'"),
        ],
        keep=2,
    ),
)
def test_doctor_says_what_is_missing_and_its_remedy_mends_it(
    hive_table: Any, run: Any, doctor: Any, lose: Any, message: str
) -> None:
    migrate.apply(hive_table.catalog, hive_table.name)
    lose(hive_table)
    code, [(level, said, remedy)] = doctor(hive_table.name)
    assert (code, level) == (3, "problem")
    assert said.startswith(message)
    follow(hive_table, run, remedy)
    code, [(level, said, remedy)] = doctor(hive_table.name)
    assert (code, level, said) == (
        0,
        "ok",
        "the table has what they need: hive, spark, trino, impala",
    )
    assert hive_table.entry.storage.input_format == INPUT


def test_only_the_engines_of_the_list_are_looked_at(hive_table: Any, doctor: Any) -> None:
    migrate.apply(hive_table.catalog, hive_table.name, interop="spark,trino")
    assert doctor(hive_table.name)[0] == 0
    with hive_table.catalog.load_table(hive_table.name).update_properties() as update:
        update.remove("icecomb.interop")
    assert doctor(hive_table.name) == (0, [])


def test_a_property_that_names_no_engine_cannot_be_set(hive_table: Any) -> None:
    migrate.apply(hive_table.catalog, hive_table.name)
    table = hive_table.catalog.load_table(hive_table.name)
    with pytest.raises(ConfigurationError, match=r"icecomb\.interop cannot be 'flink'"):
        table.update_properties().set("icecomb.interop", "flink").commit()


@pytest.mark.parametrize(("unit", "level"), [("millis", "warning"), ("micros", "ok")])
def test_times_of_avro_that_the_runtime_of_hive_3_cannot_read_are_told(
    make_hive_table: Any, run: Any, doctor: Any, unit: str, level: str
) -> None:
    """DataReader of iceberg-hive-runtime 1.4.3 knows `timestamp-micros` only."""
    table = make_hive_table({"ts": "timestamp"}, storage=AVRO)
    kind = {"type": "long", "logicalType": f"timestamp-{unit}"}
    with (table.folder / "f").open("wb") as out:
        fields = [{"name": "ts", "type": kind}]
        fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, [{"ts": 1}])
    migrate.apply(table.catalog, table.name)
    code, [(said, message, remedy)] = doctor(table.name)
    assert (code, said) == (0, level)
    if level == "ok":
        return
    assert "f hold times as timestamp-millis" in message
    command = (remedy or "").partition("rewrite the files: icecomb ")[2]
    (table.folder / "f").rename(table.folder / "away")
    code, [(said, message, remedy)] = doctor(table.name)
    assert (code, said) == (3, "problem")
    assert str(table.folder / "f") in message
    (table.folder / "away").rename(table.folder / "f")
    assert run(*command.split())[0] == 0
    assert doctor(table.name)[1][0][0] == "ok"


def test_a_list_of_another_writer_that_names_no_engine_is_a_problem(hive_table: Any) -> None:
    migrate.apply(hive_table.catalog, hive_table.name)
    metadata = hive_table.catalog.load_table(hive_table.name).metadata
    said = replace(metadata, properties={**metadata.properties, "icecomb.interop": "hive,flink"})
    [found] = examine_engines(hive_table.entry, said, hive_table.catalog.io)
    assert found.severity is Severity.PROBLEM
    assert "cannot be 'hive,flink'" in found.message
    name = quoted_name(*hive_table.name.split("."))
    assert f"ALTER TABLE {name} SET TBLPROPERTIES ('icecomb.interop'=" in str(found.remedy)


def test_engines_that_are_too_old_for_version_3_are_named(hive_table: Any) -> None:
    migrate.apply(hive_table.catalog, hive_table.name)
    table = hive_table.catalog.load_table(hive_table.name)
    table.update_properties().set("format-version", "3").commit()
    found = list(examine_engines(hive_table.entry, table.metadata, hive_table.catalog.io))
    assert [(one.severity, one.message) for one in found] == [
        (
            Severity.WARNING,
            "hive before 4.2 and impala before 5 cannot read it: it is of format version 3",
        )
    ]


def test_a_hive_table_becomes_one_of_version_3_where_the_warehouse_may_have_it(
    hive_table: Any,
) -> None:
    given = {"format-version": "3"}
    settings = {**hive_table.catalog.properties, "format-version.max": "2"}
    with HiveCatalog("limited", settings) as limited:
        before = hive_table.state
        with pytest.raises(UnsupportedError, match=r"format-version\.max is 2"):
            migrate.apply(limited, hive_table.name, properties=given)
        assert hive_table.state == before
    migrate.apply(hive_table.catalog, hive_table.name, properties=given)
    table = hive_table.catalog.load_table(hive_table.name)
    assert table.inspect.files()["first_row_id"].to_pylist() == [0]
    assert table.metadata.next_row_id == 2
