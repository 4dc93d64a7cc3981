"""Random Hive tables are taken over, changed, and given back or kept: their rows are those in memory."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import migrate
from tests.catalog.migrate.test_formats import FORMATS, write_avro

NULL = "__HIVE_DEFAULT_PARTITION__"
# Hive's type, Arrow's type, some values
COLUMNS: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "b": ("bigint", pa.int64(), [0, -1, 1 << 62]),
    "i": ("int", pa.int32(), [7, -(1 << 31)]),
    "s": ("string", pa.string(), ["", "a", "é/ =%"]),
    "d": ("double", pa.float64(), [0.5, -1e300]),
    "f": ("boolean", pa.bool_(), [True, False]),
    "day": ("date", pa.date32(), [dt.date(1969, 12, 31), dt.date(2024, 2, 29)]),
    "n": ("decimal(7,2)", pa.decimal128(7, 2), [Decimal("-1.50"), Decimal("99999.99")]),
    "bin": ("binary", pa.binary(), [b"", b"\0\xff"]),
    "st": (
        "struct<x:int,y:string>",
        pa.struct([("x", pa.int32()), ("y", pa.string())]),
        [{"x": 1, "y": None}, {"x": None, "y": "z"}],
    ),
    "l": ("array<int>", pa.list_(pa.int32()), [[], [1, None, 2]]),
}
# Hive's type, texts in the metastore and what they mean
KEYS: dict[str, tuple[str, dict[str, Any]]] = {
    "k": ("int", {"1": 1, "007": 7, "-3": -3, NULL: None}),
    "p": ("string", {"a b": "a b", "50%": "50%", "x/y": "x/y", NULL: None}),
    "q": ("date", {"2024-02-29": dt.date(2024, 2, 29), "1969-12-31": dt.date(1969, 12, 31)}),
}


AVRO_FIELDS: dict[str, Any] = {
    "b": "long",
    "i": "int",
    "s": "string",
    "d": "double",
    "f": "boolean",
    "day": {"type": "int", "logicalType": "date"},
    "n": {"type": "bytes", "logicalType": "decimal", "precision": 7, "scale": 2},
    "bin": "bytes",
    "st": {
        "type": "record",
        "name": "st",
        "fields": [{"name": n, "type": ["null", k]} for n, k in (("x", "int"), ("y", "string"))],
    },
    "l": {"type": "array", "items": ["null", "int"]},
}


def write_avro_rows(data: pa.Table, path: Path) -> None:
    write_avro(data, path, AVRO_FIELDS)


class RandomHiveTable:
    """A table of files that need not all have all columns, in order, or in lower case."""

    def __init__(self, random: Random, make_hive_table: Any) -> None:
        self.random = random
        self.kind = random.choice(sorted(FORMATS))
        self.storage, write = FORMATS[self.kind]
        self.write = write_avro_rows if self.kind == "avro" else write
        self.columns = random.sample(sorted(COLUMNS), random.randint(1, 5))
        keys = random.sample(sorted(KEYS), random.randint(0, 2))
        self.expected: list[dict[str, Any]] = []
        hive = {name: COLUMNS[name][0] for name in self.columns}
        if not keys:
            self.made = make_hive_table(
                hive, rows=self._file({}), storage=self.storage, write=self.write
            )
            return
        parts: dict[tuple[str, ...], pa.Table] = {}
        for _ in range(random.randint(1, 5)):
            texts = tuple(random.choice(sorted(KEYS[key][1])) for key in keys)
            if texts not in parts:
                values = {k: KEYS[k][1][text] for k, text in zip(keys, texts, strict=True)}
                parts[texts] = self._file(values)
        self.made = make_hive_table(
            hive,
            {key: KEYS[key][0] for key in keys},
            parts,
            storage=self.storage,
            write=self.write,
        )

    def rows(self, columns: list[str]) -> list[dict[str, Any]]:
        return [
            {name: self.random.choice([None, *COLUMNS[name][2]]) for name in columns}
            for _ in range(self.random.randint(0, 5))
        ]

    def _file(self, partition: dict[str, Any]) -> pa.Table:
        there = self.random.sample(self.columns, self.random.randint(1, len(self.columns)))
        rows = self.rows(there)
        absent = dict.fromkeys(self.columns)
        self.expected += [{**absent, **row, **partition} for row in rows]
        # Hive tells names in Avro files apart by case
        upper = self.kind != "avro" and self.random.random() < 0.3
        return pa.table(
            {
                name.upper() if upper else name: pa.array(
                    [row[name] for row in rows], COLUMNS[name][1]
                )
                for name in there
            }
        )


def ordered(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


@pytest.mark.seeds(8, gate=2)
def test_rows_are_those_of_the_files_before_and_after_and_on_the_way_back(make_hive_table, seed):
    random = Random(seed)
    table = RandomHiveTable(random, make_hive_table)
    made, expected = table.made, table.expected
    before, files = made.state, made.files()
    done = migrate.apply(made.catalog, made.name)
    assert done.rows == len(expected)
    assert ordered(made.rows()) == ordered(expected)
    assert migrate.verify(made.catalog, made.name).difference_count == 0
    kept = random.random() < 0.5
    if kept:
        migrate.finalize(made.catalog, made.name)
    appended = random.random() < 0.5
    if appended:
        loaded = made.catalog.load_table(made.name)
        new = random.choices(expected, k=3) if expected else []
        loaded.append(pa.Table.from_pylist(new, schema=loaded.schema().as_arrow()))
        expected = expected + new
        assert ordered(made.rows()) == ordered(expected)
        gone = random.choice(table.columns)
        loaded.delete(f"{gone} is null")
        expected = [row for row in expected if row[gone] is not None]
        assert ordered(made.rows()) == ordered(expected)
    if not kept:
        assert migrate.revert(made.catalog, made.name, dry_run=False, allow_data_loss=appended).done
        assert made.state == before
        # what was added may stay where no partition is; what Hive reads is asked next
        assert made.files().items() >= files.items()
        migrate.apply(made.catalog, made.name)
        assert ordered(made.rows()) == ordered(table.expected)
