"""Random changes of columns with defaults, and of rows, against rows that are kept in memory."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField, StructType
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

VALUES = {
    "int": [-1, 0, 7, 8],
    "string": ["", "a", "ab"],
    "date": [dt.date(1969, 12, 31), dt.date(2024, 1, 31)],
    "decimal(9, 2)": [Decimal("-1.50"), Decimal("0.00")],
    "float": [-0.25, 1.5],
    "timestamp": [
        dt.datetime.fromisoformat("1969-12-31 00:00:00"),
        dt.datetime.fromisoformat("2024-01-31 05:06:07.000008"),
    ],
}
WIDER = {"int": "long", "float": "double", "decimal(9, 2)": "decimal(20, 2)", "date": "timestamp"}
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "s", StructType(NestedField(3, "a", LongType()))),
)
STEPS = (
    *("append",) * 4,
    *("add a column",) * 3,
    *("change a default",) * 2,
    "rename a column",
    "drop a column",
    "widen a column",
    "partition",
    "delete",
    "delete equal rows",
    "insert",
    "rewrite data files",
    "change the format",
)


@dataclass
class Column:
    """A column of the model: its name, its type, the value of rows that lack one, whether null is a value."""

    name: str
    kind: str
    default: Any
    required: bool = False
    partitioned: bool = False


class Model:
    """A table, its columns beside `id` and `s`, those in `s`, and its rows by id: values by column's number."""

    def __init__(self, folder, random: Random) -> None:
        catalog = load_catalog("files", type="hadoop", warehouse=str(folder))
        catalog.create_namespace("db")
        properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
        self.table = catalog.create_table("db.t", SCHEMA, properties=properties)
        self.random = random
        self.columns: dict[int, Column] = {}
        self.inside: dict[int, Column] = {-1: Column("a", "int", None)}
        self.rows: dict[int, dict[int, Any]] = {}
        self.made = 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            step = self.random.choice(STEPS)
            getattr(self, "_" + step.replace(" ", "_"))()
            self.table.refresh()
            self._compare(step)

    def _number(self) -> int:
        self.made += 1
        return self.made

    def _value(self, column: Column) -> Any:
        nothing = [] if column.required else [None]
        return self.random.choice([*VALUES[column.kind], *nothing])

    # ------------------------------------------------------------------------------------ columns

    def _add_a_column(self) -> None:
        number, inside = self._number(), self.random.random() < 0.3
        kind = self.random.choice(list(VALUES))
        column = Column(f"c{number}", kind, self.random.choice([*VALUES[kind], None]))
        column.required = column.default is not None and self.random.random() < 0.3
        with self.table.update_schema() as update:
            path = ("s", column.name) if inside else (column.name,)
            update.add_column(path, kind, required=column.required, default_value=column.default)
        (self.inside if inside else self.columns)[number] = column
        for row in self.rows.values():
            if not inside or row[0] is not None:
                row[number] = column.default

    def _any(self) -> tuple[int, Column, str] | None:
        places = [(n, c, c.name) for n, c in self.columns.items()]
        places += [(n, c, f"s.{c.name}") for n, c in self.inside.items() if n > 0]
        return self.random.choice(places) if places else None

    def _change_a_default(self) -> None:
        if found := self._any():
            _, column, path = found
            nothing = [] if column.required else [None]
            column.default = self.random.choice([*VALUES[column.kind], *nothing])
            with self.table.update_schema() as update:
                update.set_default_value(path, column.default)

    def _rename_a_column(self) -> None:
        if found := self._any():
            _, column, path = found
            column.name = f"r{self._number()}"
            with self.table.update_schema() as update:
                update.rename_column(path, column.name)

    def _widen_a_column(self) -> None:
        if found := self._any():
            number, column, path = found
            wider = WIDER.get(column.kind)
            if wider is None or (column.partitioned and wider == "timestamp"):
                return
            with self.table.update_schema() as update:
                update.update_column(path, wider)
            if wider == "timestamp":
                column.kind = wider
                column.default = midnight(column.default)
                for row in self.rows.values():
                    if number in row:
                        row[number] = midnight(row[number])

    def _drop_a_column(self) -> None:
        found = self._any()
        if found is None or found[1].partitioned:
            return
        number, _, path = found
        with self.table.update_schema() as update:
            update.delete_column(path)
        self.columns.pop(number, None)
        self.inside.pop(number, None)
        for row in self.rows.values():
            row.pop(number, None)

    def _partition(self) -> None:
        places = [c for c in self.columns.values() if not c.partitioned]
        if places:
            column = self.random.choice(places)
            column.partitioned = True
            floating = column.kind == "float"  # which cannot be in buckets
            transform = "identity" if floating else self.random.choice(["identity", "bucket[3]"])
            with self.table.update_spec() as update:
                update.add_field(column.name, transform, f"p{self._number()}")

    # --------------------------------------------------------------------------------------- rows

    def _frame(self, count: int) -> pa.Table:
        """New rows with some of the columns; the model gets them with all."""
        random = self.random
        given = [n for n in self.columns if random.random() < 0.5]
        inner = [n for n in self.inside if random.random() < 0.5] or [-1]
        with_struct = random.random() < 0.5
        rows = []
        for _ in range(count):
            key = self._number()
            row = {n: self._value(c) if n in given else c.default for n, c in self.columns.items()}
            row[0] = True if with_struct and random.random() < 0.7 else None
            if row[0]:
                row |= {
                    n: self._value(c) if n in inner else c.default for n, c in self.inside.items()
                }
            self.rows[key] = row
            rows.append((key, row))
        full = self.table.schema().as_arrow()
        columns = {"id": pa.array([key for key, _ in rows], pa.int64())}
        for n in given:
            name = self.columns[n].name
            columns[name] = pa.array([row[n] for _, row in rows], full.field(name).type)
        if with_struct:
            kind = full.field("s").type
            fields = [kind.field(self.inside[n].name) for n in inner]
            values = [row[0] and {self.inside[n].name: row[n] for n in inner} for _, row in rows]
            columns["s"] = pa.array(values, pa.struct([f.with_nullable(True) for f in fields]))
        return pa.table(columns)

    def _append(self) -> None:
        self.table.append(self._frame(self.random.randint(1, 3)))

    def _insert(self) -> None:
        self.table.upsert(self._frame(2), ["id"], when_matched_update_all=False)

    def _delete(self) -> None:
        if places := list(self.columns.items()):
            number, column = self.random.choice(places)
            value = self._value(column)
            self.table.delete(predicate(column.name, value))
            self._drop_rows(number, value)

    def _delete_equal_rows(self) -> None:
        places = list(self.columns.items())
        if not places or not self.rows:
            return
        number, column = self.random.choice(places)
        value, table = self._value(column), self.table
        writer = EqualityDeleteWriter(
            table.io, table.metadata, str(uuid4()), [column.name], spec_id=0
        )
        kind = table.schema().as_arrow().field(column.name).type
        writer.write(pa.record_batch({column.name: pa.array([value], kind)}))
        (deletes,) = writer.close()
        table.commit(RowDelta(table.io).add_deletes(deletes))
        self._drop_rows(number, value)

    def _drop_rows(self, number: int, value: Any) -> None:
        self.rows = {key: row for key, row in self.rows.items() if row[number] != value}

    def _rewrite_data_files(self) -> None:
        self.table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})

    def _change_the_format(self) -> None:
        chosen = self.random.choice(["parquet", "orc", "avro"])
        with self.table.transaction() as change:
            change.set_properties({"write.format.default": chosen})

    # ---------------------------------------------------------------------------------- comparing

    def _compare(self, step: str) -> None:
        found = {row.pop("id"): row for row in self.table.scan().to_arrow().to_pylist()}
        expected = {}
        for key, row in self.rows.items():
            shown = {c.name: row[n] for n, c in self.columns.items()}
            inner = {c.name: row[n] for n, c in self.inside.items()} if row[0] else None
            expected[key] = shown | {"s": inner}
        assert found == expected, step
        if place := self._any():
            number, column, path = place
            value = self._value(column)
            scan = self.table.scan(predicate(path, value))
            kept = {
                k
                for k, row in self.rows.items()
                if (number in row or value is None) and row.get(number) == value
            }
            assert set(scan.to_arrow()["id"].to_pylist()) == kept, (step, path, value)
            assert scan.count() == len(kept)


def midnight(date: dt.date | None) -> dt.datetime | None:
    return None if date is None else dt.datetime.combine(date, dt.time())


def predicate(path: str, value: Any) -> str:
    if value is None:
        return f"{path} is null"
    return f"{path} = '{value}'" if isinstance(value, str | dt.date) else f"{path} = {value}"


@pytest.mark.seeds(60, gate=2)
def test_rows_have_the_defaults_that_a_model_has(seed, tmp_path):
    Model(tmp_path, Random(seed)).run(25)
