"""Tables with a random schema, changed by random steps, beside the rows that they must have."""

from __future__ import annotations

import datetime as dt
import math
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from icecomb.catalog import load_catalog
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.types import DoubleType, LongType, StringType
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter

NAN = float("nan")
UTC = dt.timezone.utc
TIMES = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), dt.datetime(2024, 2, 29, tzinfo=UTC)]
INNER = pa.struct([("x", pa.int32()), ("y", pa.string())])
OUTER = pa.struct([("in", INNER), ("z", pa.bool_())])
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int32(): [0, 1, -1, 2**31 - 1],
    pa.int64(): [0, 7, -(2**63), 2**63 - 1],
    pa.float32(): [NAN, 0.5, -1.0, math.inf],
    pa.float64(): [NAN, 0.1, -2.5, 1e300],
    pa.bool_(): [True, False],
    pa.string(): ["", "a", "é\U0001f600", "a/b=c%"],
    pa.binary(): [b"", b"\x00\xff", b"ab"],
    pa.binary(3): [b"abc", b"\x00\x00\x00"],
    pa.decimal128(9, 2): [Decimal("0.00"), Decimal("-1.50"), Decimal("9999999.99")],
    pa.date32(): [dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
    pa.timestamp("us", "UTC"): TIMES,
    pa.timestamp("us"): [t.replace(tzinfo=None) for t in TIMES],
    INNER: [{"x": 1, "y": "q"}, {"x": None, "y": None}],
    OUTER: [{"in": {"x": 1, "y": None}, "z": True}, {"in": None, "z": None}],
    pa.list_(pa.int32()): [[], [1, None], [2]],
    pa.list_(INNER): [[], [{"x": 5, "y": None}, None]],
    pa.map_(pa.string(), pa.int64()): [[], [("k", 1), ("l", None)]],
}
# equality deletes compare no fixed column, which Iceberg Java gets wrong
KEYS = [
    k
    for k in VALUES
    if not (pa.types.is_nested(k) or pa.types.is_floating(k) or pa.types.is_fixed_size_binary(k))
]
TRANSFORMS = {
    pa.int32(): ["identity", "bucket[3]", "truncate[2]"],
    pa.int64(): ["identity", "bucket[3]"],
    pa.string(): ["identity", "truncate[1]"],
    pa.decimal128(9, 2): ["bucket[2]", "truncate[10]"],
    pa.date32(): ["month", "identity"],
    pa.timestamp("us", "UTC"): ["day", "hour"],
    pa.bool_(): ["identity"],
}
PROMOTIONS = {pa.int32(): LongType(), pa.float32(): DoubleType()}
PROMOTED = {pa.int32(): pa.int64(), pa.float32(): pa.float64()}


class RandomTable:
    """A table, and its rows as dictionaries by field id.

    Args:
        random: Decides everything.
        catalog: Where the table is made.
        name: Its name.
        file_format: Of data and delete files.
        equality: Whether rows are deleted by their values, too.
        types: What columns may have.
        version: The format version.
    """

    def __init__(
        self,
        random: Random,
        catalog: Any,
        name: Any,
        file_format: str,
        *,
        equality: bool = True,
        types: list[pa.DataType] | None = None,
        version: str = "2",
    ) -> None:
        self.random = random
        self.types = types or list(VALUES)
        self._made = 0
        # others are not written to ORC before 1970
        self._whole_seconds = file_format == "orc"
        self._equality = equality
        chosen = random.sample(self.types, random.randint(1, 4))
        structs = [kind for kind in self.types if pa.types.is_struct(kind)]
        if structs and random.random() < 0.5:
            chosen.append(random.choice(structs))
        fields = [("id", pa.int64()), *((self._name(), kind) for kind in chosen)]
        mode = random.choice(["merge-on-read", "copy-on-write"])
        properties = {
            "format-version": version,
            "write.format.default": file_format,
            "write.delete.mode": mode,
            "write.delete.granularity": random.choice(["file", "partition"]),
        }
        self.table = catalog.create_table(name, pa.schema(fields), properties=properties)
        ids = [f.field_id for f in self.table.schema().fields]
        self.kinds = dict(zip(ids, [pa.int64(), *chosen], strict=True))
        self.rows: list[dict[int, Any]] = []
        self.history: list[tuple[int, list[dict[str, Any]]]] = []
        for _ in range(random.randint(0, 2)):
            self._respec()

    def change(self) -> None:
        """A random step."""
        steps = [self.append, self.append, self._delete, self._evolve, self._evolve, self._respec]
        steps.append(self._compact)
        if self._equality and self.rows:
            steps += [self._delete_keys, self._delete_keys]
        before = self.table.metadata.current_snapshot_id
        self.random.choice(steps)()
        after = self.table.metadata.current_snapshot_id
        if after != before:
            self.history.append((after, self.expected()))

    def expected(self) -> list[dict[str, Any]]:
        """The rows by the columns' present names, in an order of their own."""
        names = {f.field_id: f.name for f in self.table.schema().fields}
        return ordered({n: row.get(i) for i, n in names.items()} for row in self.rows)

    def _name(self) -> str:
        self._made += 1
        return f"c{self._made}"

    def _value(self, kind: pa.DataType) -> Any:
        if self.random.random() < 0.25:
            return None
        value = self.random.choice(VALUES[kind])
        if isinstance(value, dt.datetime) and self._whole_seconds:
            return value.replace(microsecond=0)
        return value

    def append(self) -> None:
        """Adds random rows."""
        rows = [
            {i: self._value(kind) for i, kind in self.kinds.items()}
            for _ in range(self.random.randint(1, 6))
        ]
        for row in rows:
            row[1] = self.random.randint(0, 20)
        self.table.append(self._frame(rows, list(self.kinds)))
        self.rows += rows

    def _frame(self, rows: list[dict[int, Any]], ids: list[int]) -> pa.Table:
        schema = self.table.schema()
        arrow = schema_to_pyarrow(schema, include_field_ids=False)
        fields = [arrow.field(schema.find_field(i).name) for i in ids]
        arrays = [
            pa.array([r.get(i) for r in rows], f.type) for i, f in zip(ids, fields, strict=True)
        ]
        return pa.table(arrays, schema=pa.schema(fields))

    def _delete(self) -> None:
        low = self.random.randint(0, 20)
        high = low + self.random.randint(0, 6)
        self.table.delete(f"id >= {low} and id <= {high}")
        self.rows = [row for row in self.rows if not low <= row[1] <= high]

    def _delete_keys(self) -> None:
        ids = [i for i, kind in self.kinds.items() if kind in KEYS]
        ids = self.random.sample(ids, self.random.randint(1, min(3, len(ids))))
        keys = [{i: row.get(i) for i in ids} for row in self.random.sample(self.rows, 1)]
        keys.append({i: self._value(self.kinds[i]) for i in ids})
        names = [self.table.schema().find_field(i).name for i in ids]
        # The first spec has no fields: its deletes are about all partitions.
        writer = EqualityDeleteWriter(
            self.table.io, self.table.metadata, f"eq{len(self.history)}", names, spec_id=0
        )
        for batch in self._frame(keys, ids).to_batches():
            writer.write(batch)
        change = RowDelta(self.table.io)
        for file in writer.close():
            change.add_deletes(file)
        self.table.commit(change)
        gone = {repr([key[i] for i in ids]) for key in keys}
        self.rows = [r for r in self.rows if repr([r.get(i) for i in ids]) not in gone]

    def _compact(self) -> None:
        random = self.random
        names = [
            self.table.schema().find_field(i).name
            for i, kind in self.kinds.items()
            if not pa.types.is_nested(kind)
        ]
        some = random.sample(names, random.randint(1, min(2, len(names))))
        orders = [None, None, f"{some[0]} DESC NULLS LAST"]
        apart = {f.source_id for f in self.table.spec().fields}
        if {self.table.schema().find_field(name).field_id for name in some} - apart:
            orders.append(f"zorder({', '.join(some)})")
        options = {
            "rewrite-all": random.choice(["true", "false"]),
            "min-input-files": "2",
            "delete-file-threshold": "1",
            "use-starting-sequence-number": random.choice(["true", "true", "false"]),
            "remove-dangling-deletes": random.choice(["true", "false"]),
            "partial-progress.enabled": random.choice(["true", "false"]),
        }
        done = self.table.maintenance.rewrite_data_files(
            sort_order=random.choice(orders), options=options
        )
        assert not done.failed_data_files_count

    def _evolve(self) -> None:
        others = [i for i in self.kinds if i != 1]
        used = {self._column_of(source) for source in self._sources()}
        step = self.random.choice(["add", "rename", "drop", "promote"])
        at = self.random.choice(others) if others else None
        with self.table.update_schema() as update:
            if step == "add" or at is None:
                name = self._name()
                update.add_column(name, StringType())
            elif step == "rename":
                update.rename_column(self.table.schema().find_field(at).name, self._name())
            elif step == "drop" and at not in used:
                update.delete_column(self.table.schema().find_field(at).name)
                del self.kinds[at]
            elif step == "promote" and self.kinds[at] in PROMOTIONS:
                name = self.table.schema().find_field(at).name
                update.update_column(name, PROMOTIONS[self.kinds[at]])
                self.kinds[at] = PROMOTED[self.kinds[at]]
        for field in self.table.schema().fields:
            self.kinds.setdefault(field.field_id, pa.string())

    def _respec(self) -> None:
        fields = self.table.spec().fields
        possible = [
            (path, transform)
            for i, kind in self.kinds.items()
            for path, inside in _paths(self.table.schema().find_field(i).name, kind)
            for transform in TRANSFORMS.get(inside, [])
        ]
        with self.table.update_spec() as update:
            if fields and self.random.random() < 0.4:
                update.remove_field(fields[0].name)
            elif possible:
                path, transform = self.random.choice(possible)
                name = self._name()
                if self.table.schema().find_field(path).field_id not in self._sources():
                    update.add_field(path, transform, name)

    def _sources(self) -> set[int]:
        """The fields that any spec partitions by."""
        return {f.source_id for spec in self.table.specs().values() for f in spec.fields}

    def _column_of(self, field_id: int) -> int:
        """The column that has a field somewhere inside."""
        schema = self.table.schema()
        while (parent := schema.find_parent_id(field_id)) is not None:
            field_id = parent
        return field_id


def _paths(name: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The fields of a column that have one value a row, by their dotted names."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _paths(f"{name}.{field.name}", field.type)
    else:
        yield name, kind


def ordered(rows: Any) -> list[dict[str, Any]]:
    """Rows that compare, in an order that does not depend on that of the files."""
    return sorted(({n: plain(v) for n, v in row.items()} for row in rows), key=repr)


def plain(value: Any) -> Any:
    """A value that equals itself, floats by their bits."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack(">d", value).hex()
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat()
    return value


@contextmanager
def changed_table(
    random: Random, steps: int, file_format: str, **options: Any
) -> Iterator[RandomTable]:
    """Provide a table in a folder of its own, changed so often; options are those of `RandomTable`."""
    with (
        tempfile.TemporaryDirectory() as folder,
        load_catalog("lake", type="hadoop", warehouse=folder) as lake,
    ):
        lake.create_namespace("db")
        made = RandomTable(random, lake, "db.t", file_format, **options)
        for _ in range(steps):
            made.change()
        yield made
