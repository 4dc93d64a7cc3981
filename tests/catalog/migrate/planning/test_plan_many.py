"""Plans of many tables at once: names and patterns, tables that fail, and the three forms of output."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import migrate
from icecomb.catalog.hive.thrift.entity import HiveTable, StorageDescriptor
from icecomb.catalog.hive.thrift.failure import UnreachableError
from icecomb.catalog.migrate.planning import planner
from icecomb.format.errors import NoSuchTableError, ValidationError
from tests.catalog.migrate.conftest import PARQUET
from tests.catalog.numbered_rows import numbers

_DATABASES = itertools.count()


@pytest.fixture
def shop(make_hive_table: Any, namespace: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A database of its own: names of tables in it after what they are; of all databases there is one more."""
    ready = make_hive_table({"id": "bigint"}, rows=numbers(1, 2))
    blocked = make_hive_table({"id": "bigint", "u": "uniontype<int>"}, rows=numbers(1))
    catalog = ready.catalog
    # what all other tests have made would be planned, too
    monkeypatch.setattr(type(catalog.client), "databases", lambda _: ["made", namespace])
    made = {"sales_ready": ready, "sales_blocked": blocked}
    for name, table in made.items():
        catalog.client.create_table(
            HiveTable(
                namespace,
                name,
                storage=table.entry.storage,
                parameters={"team": "x"},
                table_type="EXTERNAL_TABLE",
            )
        )
    view = HiveTable(
        namespace,
        "sales_view",
        storage=PARQUET,
        table_type="VIRTUAL_VIEW",
        view_original_text="SELECT 1",
        view_expanded_text="SELECT 1",
    )
    catalog.client.create_table(view)
    catalog.create_table(f"{namespace}.orders", pa.schema([("id", pa.int64())]))
    yield catalog, namespace
    for name in catalog.client.table_names(namespace):
        catalog.client.drop_table(namespace, name)


def test_names_patterns_and_databases_mean_hive_tables_each_once(shop: Any) -> None:
    catalog, database = shop

    def planned(*names: Any) -> list[tuple[str, str]]:
        plans = migrate.plan_many(catalog, names, footers=False)
        return [(plan.table.partition(".")[2], plan.verdict) for plan in plans]

    both = [("sales_blocked", "blocked"), ("sales_ready", "ready")]
    assert planned(f"{database}.*") == planned(database) == planned(f"{database}.S*_*d*") == both
    assert planned(f"{database}.*_ready", database) == both[::-1]
    assert planned((database, "sales_ready")) == both[1:]
    # what is named is planned whatever it is
    assert planned(f"{database}.orders", f"{database}.sales_view") == [
        ("orders", "already"),
        ("sales_view", "blocked"),
    ]
    assert set(both) <= set(planned("*"))
    for name in (f"{database}.nothing*", f"{database}.ord*"):
        with pytest.raises(NoSuchTableError, match="matches"):
            planned(name)


def test_a_table_that_cannot_be_looked_at_is_a_line_and_the_others_are_planned(
    shop: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, database = shop
    real = planner.plan_source

    def odd(io: Any, table: Any, *arguments: Any, **options: Any) -> Any:
        if table.name == "sales_blocked":
            raise KeyError("what a broken entry leads to")
        return real(io, table, *arguments, **options)

    monkeypatch.setattr(planner, "plan_source", odd)
    names = [f"{database}.gone", f"{database}.sales_blocked", f"{database}.sales_ready"]
    gone, broken, ready = migrate.plan_many(catalog, names)
    assert [gone.verdict, broken.verdict, ready.verdict] == ["failed", "failed", "ready"]
    assert gone.blockers[0].message == f"There is no table {database}.gone"
    assert broken.blockers[0].message.startswith("KeyError: 'what a broken entry")
    assert all(plan.blockers[0].remedy for plan in (gone, broken))
    code, out, _ = run("plan", *names, form="json")
    assert (code, [one["verdict"] for one in json.loads(out)]) == (3, ["failed", "failed", "ready"])


def test_a_metastore_that_is_gone_ends_the_run(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, database = shop

    def lost(*_: Any, **__: Any) -> Any:
        raise UnreachableError("The metastore cannot be reached", hint="start it")

    monkeypatch.setattr(planner, "plan_source", lost)
    with pytest.raises(UnreachableError):
        list(migrate.plan_many(catalog, [database]))


def test_no_more_plans_are_held_than_are_asked_for(
    shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, database = shop
    begun: list[str] = []
    real = planner.plan_source

    def counted(io: Any, table: Any, *arguments: Any, **options: Any) -> Any:
        begun.append(table.name)
        return real(io, table, *arguments, **options)

    monkeypatch.setattr(planner, "plan_source", counted)
    for at in range(20):
        entry = catalog.client.table(database, "sales_ready")
        storage = StorageDescriptor(
            columns=entry.storage.columns,
            location=entry.storage.location,
            input_format=entry.storage.input_format,
        )
        catalog.client.create_table(
            HiveTable(database, f"more_{at:02}", storage=storage, table_type="EXTERNAL_TABLE")
        )
    plans = migrate.plan_many(catalog, [f"{database}.more_*"], jobs=2, footers=False)
    assert next(plans).table == f"{database}.more_00"
    plans.close()
    assert len(begun) <= 6
    assert len(list(migrate.plan_many(catalog, [f"{database}.more_*"], jobs=3))) == 20


def test_text_json_and_csv_say_the_same(shop: Any, run: Any) -> None:
    _, database = shop
    code, out, err = run("plan", database)
    assert (code, err) == (3, "2 views and Iceberg tables are skipped\n")
    lines = out.splitlines()
    assert lines[0].split() == [
        *("TABLE", "VERDICT", "PARTITIONS", "FILES", "BYTES"),
        *("ROWS", "SECONDS", "BLOCKERS", "WARNINGS"),
    ]
    assert [line.split()[1] for line in lines[1:3]] == ["blocked", "ready"]
    assert "blocker unsupported-column: 1 tables" in lines
    assert lines[-1].startswith("2 tables: 1 blocked, 1 ready; 2 files of ")
    code, out, _ = run("plan", database, "--output", "json")
    documents = json.loads(out)
    assert (code, [one["rows"] for one in documents]) == (3, [1, 2])
    code, out, _ = run("plan", database, "--output", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 3
    assert [(row["table"], row["code"]) for row in rows] == [
        (one["table"], finding["code"]) for one in documents for finding in one["findings"]
    ]
    assert {row["rows"] for row in rows} == {"1", "2"}
    assert run("plan", f"{database}.*_ready", "--output", "csv")[0] == 0


def test_what_is_asked_for_has_to_make_sense(shop: Any, run: Any) -> None:
    catalog, database = shop
    for arguments in ((), (database, "--all"), (database, "--quick", "--sample", "3")):
        assert run("plan", *arguments)[0] == 2
    assert run("plan", database, "--sample", "0")[0] == 2
    for options in ({"jobs": 0}, {"sample": 0}):
        with pytest.raises(ValidationError):
            migrate.plan_many(catalog, [database], **options)
    with pytest.raises(NoSuchTableError):
        migrate.plan(catalog, f"{database}.gone")
    code, out, _ = run("plan", "--all", "--quick", form="json")
    assert f"{database}.sales_ready" in {one["table"] for one in json.loads(out)}
    assert code == 3
