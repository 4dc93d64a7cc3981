"""docs/migration.md followed for a whole database: planned, mended, taken over, compared, and given back.

Three formats, partitions of hostile values, a view, and three broken tables. What each table holds is known from
what was written, and asked of PyIceberg where it reads the format.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from icecomb.catalog.hive.thrift.entity import HiveTable
from tests.catalog.migrate.conftest import AVRO, ORC, PARQUET

NULL = "__HIVE_DEFAULT_PARTITION__"
HOSTILE = ("a b", "50%", "x/y", "k=v", "ü漢", "%2F", "null", "it's", NULL)
PREFIX = "recipe_"
PATTERN = f"made.{PREFIX}*"


def rows_of(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "text": [f"text {n}" for n in ids]})


def write_avro(data: pa.Table, path: Path) -> None:
    fields = [{"name": n, "type": ["null", t]} for n, t in (("id", "long"), ("text", "string"))]
    schema = {"type": "record", "name": "row", "fields": fields}
    with path.open("wb") as file:
        fastavro.writer(file, schema, data.to_pylist())


FORMATS = ((PARQUET, pq.write_table), (ORC, orc.write_table), (AVRO, write_avro))


@pytest.fixture
def run(icecomb: Any) -> Any:
    """Runs `icecomb --output json migrate ...`: exit code and stdout."""
    return lambda *arguments: icecomb("migrate", *arguments, form="json")[:2]


@pytest.fixture
def warehouse(
    make_hive_table: Any, request: pytest.FixtureRequest
) -> dict[str, tuple[Any, list[tuple[int, str, str | None]]]]:
    """Tables and the rows that they hold: (id, text, key)."""
    made = {}
    columns = {"id": "bigint", "text": "string"}
    full = request.config.getoption("--ring") == "full"
    copies = request.config.getoption("--recipe-copies") if full else 1
    for number in range(copies):
        for storage, write in FORMATS:
            plain = make_hive_table(
                columns, rows=rows_of(number, 7), storage=storage, write=write, prefix=PREFIX
            )
            made[plain.name] = plain, [(n, f"text {n}", None) for n in (number, 7)]
            values = HOSTILE[number % 3 :: min(copies, 3)]
            parted = make_hive_table(
                columns,
                {"key": "string", "n": "int"},
                {(value, str(at)): rows_of(at) for at, value in enumerate(values)},
                storage=storage,
                write=write,
                prefix=PREFIX,
            )
            made[parted.name] = (
                parted,
                [
                    (at, f"text {at}", None if value == NULL else value)
                    for at, value in enumerate(values)
                ],
            )
    return made


def verdicts(text: str) -> Counter[str]:
    return Counter(
        {row["table"]: row["verdict"] for row in csv.DictReader(io.StringIO(text))}.values()
    )


def codes(text: str, table: Any) -> set[str]:
    rows = csv.DictReader(io.StringIO(text))
    return {
        row["code"] for row in rows if row["table"] == table.name and row["severity"] == "blocker"
    }


def outcomes(text: str) -> Counter[str]:
    return Counter(json.loads(text)["summary"])


def test_a_database_is_moved_and_given_back(
    warehouse: Any, make_hive_table: Any, run: Any, pyiceberg: Any
) -> None:
    columns = {"id": "bigint", "text": "string"}
    first = next(iter(warehouse.values()))[0]
    client = first.catalog.client
    cut = make_hive_table(columns, rows=rows_of(1), prefix=PREFIX)
    (cut.folder / "cut.parquet").write_bytes(b"PAR1" + bytes(50))
    lacking = make_hive_table(
        columns, {"n": "int"}, {("1",): rows_of(1), ("2",): None}, prefix=PREFIX
    )
    odd = make_hive_table(
        columns, {"n": "int"}, {("1",): rows_of(1), ("one",): rows_of(2)}, prefix=PREFIX
    )
    view = HiveTable(
        "made",
        f"{PREFIX}view",
        storage=PARQUET,
        table_type="VIRTUAL_VIEW",
        view_original_text=f"SELECT id FROM {first.name}",
        view_expanded_text=f"SELECT id FROM {first.name}",
    )
    client.create_table(view)
    try:
        count = len(warehouse)
        files = {name: table.files() for name, (table, _) in warehouse.items()}
        before = {name: table.state for name, (table, _) in warehouse.items()}
        avro = {name for name, (entry, _) in before.items() if "avro" in str(entry.storage.serde)}

        # All blockers come at once; each remedy is followed.
        code, plan = run("plan", PATTERN, "--output", "csv")
        assert (code, verdicts(plan)) == (3, {"ready": count, "blocked": 3})
        assert codes(plan, lacking) == {"missing-folder"}
        assert codes(plan, odd) == {"partition-value"}
        assert len(codes(plan, cut)) == 1
        views = [row for row in csv.DictReader(io.StringIO(plan)) if row["code"] == "views-on-it"]
        assert [(row["table"], row["places"]) for row in views] == [
            (first.name, f"made.{view.name}")
        ]
        code, done = run("apply", PATTERN)  # the others do not wait for the broken ones
        assert (code, outcomes(done)) == (3, {"done": count, "blocked": 3})
        (cut.folder / "cut.parquet").unlink()
        client.partitions.drop(*odd.name.split("."), ["n=one"])
        broken_before = {one.name: one.state for one in (cut, lacking, odd)}
        code, done = run("apply", PATTERN, "--accept", "missing-partitions")
        assert (code, outcomes(done)) == (0, {"done": count + 3})

        # What was written is what is read, and no file was touched.
        code, compared = run("verify", PATTERN)
        assert (code, outcomes(compared)) == (0, {"done": count + 3})
        for name, (table, rows) in warehouse.items():
            found = (
                table.rows()  # PyIceberg reads no Avro files
                if name in avro
                else pyiceberg.load_table(name).scan().to_arrow().to_pylist()
            )
            read = sorted((row["id"], row["text"], row.get("key")) for row in found)
            assert read == sorted(rows), name
            assert table.files() == files[name]
        for table in (cut, lacking, odd):
            assert [row["id"] for row in table.rows()] == [1]
        assert client.table("made", view.name).view_original_text == view.view_original_text

        # One gets new rows: it is not given back in silence.
        warehouse[first.name][0].catalog.load_table(first.name).append(rows_of(99))
        code, answer = run("revert", PATTERN, "--yes", "--jobs", "2")
        assert (code, outcomes(answer)) == (3, {"done": count + 2, "blocked": 1})
        assert 99 in {row["id"] for row in first.rows()}
        code, answer = run("revert", PATTERN, "--yes", "--allow-data-loss")
        assert (code, outcomes(answer)) == (0, {"done": 1})
        for name, (table, _) in warehouse.items():
            assert table.state == before[name]
            assert table.files().items() >= files[name].items()
        for table in (cut, lacking, odd):
            assert table.state == broken_before[table.name]
    finally:
        client.drop_table("made", view.name)
        for table in (*(one for one, _ in warehouse.values()), cut, lacking, odd):
            client.drop_table(*table.name.split("."))
