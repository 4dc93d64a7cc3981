"""Tables whose metadata says what it says for other writers' reasons, against the rows they have.

Survived is what the specification lets be (bounds that are missing, truncated or wider than the file, counts that are
missing) and what cannot be (bounds upside down, of another width or NaN, counts below zero, of no value or beyond the
rows), of data files, position delete files, and manifests in their list. A bound that is too narrow, and a list that
says that a manifest has no files, cannot be told from the truth: neither we nor Iceberg Java read such files.
"""

from __future__ import annotations

import math
import random
import struct

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.format.scan.file_aggregates import Aggregate, AggregateFunction
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import DateType, DoubleType, LongType, NestedField, StringType
from tests.catalog.metadata_of_others import NO_CACHE, again, told_otherwise

NAN = float("nan")
PATH = 2147483546
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "p", StringType()),
    NestedField(3, "x", DoubleType()),
    NestedField(4, "s", StringType()),
    NestedField(5, "d", DateType()),
)
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.string()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("d", pa.date32()),
    ]
)
SPEC = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"))
TEXTS = ["", "a", "long text of more than sixteen characters", "z" * 20]
LOWER, UPPER = "lower_bounds", "upper_bounds"
COUNTS = ("value_counts", "null_value_counts", "nan_value_counts")


def both(change):
    """A lie about the bounds of one column that has both."""

    def lie(draw, record, _):
        lower, upper = record[LOWER] or {}, record[UPPER] or {}
        known = sorted(lower.keys() & upper.keys())
        if known:
            column = draw.choice(known)
            lower[column], upper[column] = change(column, lower[column], upper[column])

    return lie


def upside_down(column, lower, upper):
    return upper, lower


def truncated(column, lower, upper):
    """As the specification says: the end is one that no value reaches."""
    if column != 4:
        return lower, upper
    return lower[:1], bytes([*upper[:1], 0x7F])


def of_another_width(column, lower, upper):
    return (lower, upper) if column in {2, 4, PATH} else (b"\x01\x02\x03", upper + b"\x00")


def not_a_number(column, lower, upper):
    nan = struct.pack("<d", NAN)
    return (nan, nan) if column == 3 else (lower, upper)


def no_text(column, lower, upper):
    # the upper one of text would be too narrow where it is not below the lower one
    return (b"", b"\xff") if column == 4 else (lower, upper)


def missing(draw, record, _):
    name = draw.choice([LOWER, UPPER, *COUNTS])
    if draw.random() < 0.5 or not record[name]:
        record[name] = None
    else:
        del record[name][draw.choice(sorted(record[name]))]


def counted(*numbers):
    def lie(draw, record, _):
        number = draw.choice(numbers) if record["record_count"] else 0
        number += record["record_count"] if number > 0 else 0
        for name in draw.sample(COUNTS, draw.randint(1, 3)):
            if record[name]:
                record[name] = dict.fromkeys(record[name], number)

    return lie


def of_no_value(draw, record, _):
    for name in COUNTS:
        record[name] = dict.fromkeys(record[name] or {}, 0)


def of_all_files(draw, record, every):
    """As ClickHouse did: each file of an INSERT has the bounds and the counts of all of them."""
    kinds = {1: "<q", 3: "<d", 5: "<i"}
    for name, most in ((LOWER, min), (UPPER, max)):
        for column, kind in kinds.items():
            stated = [f[name][column] for f in every if column in (f[name] or {})]
            values = [
                v
                for v in (
                    struct.unpack(kind, b)[0] for b in stated if len(b) == struct.calcsize(kind)
                )
                if not math.isnan(v)
            ]
            if values and column in (record[name] or {}):
                record[name][column] = struct.pack(kind, most(values))


OF_EXCHANGED_BOUNDS = both(upside_down)
OF_DATA = [
    OF_EXCHANGED_BOUNDS, both(truncated), both(of_another_width), both(not_a_number), both(no_text), missing,
    counted(-1), counted(7, 1 << 40), of_no_value, of_all_files,
]  # fmt: skip
# One exchanged bound alone is too narrow; where values are not counted, no NaN among them is no lie.
UNCONTRADICTED = [{OF_EXCHANGED_BOUNDS, missing}, {of_no_value, missing}]


def of_paths(draw, record, _):
    if record["file_format"] == "PUFFIN":
        return  # a vector has no bounds, and must name its data file
    record["referenced_data_file"] = None
    lower, upper = ((record[name] or {}).get(PATH) for name in (LOWER, UPPER))
    if lower is None or upper is None:
        return
    found = draw.choice(
        [
            (upper + b"~", lower), (b"\xff", b"\xfe"), (b"", b""), (lower[:16], upper[:16]), (lower, upper[:30]),
            (None, upper), (lower, None), (None, None), (b"", b"\xff" * 3),
        ]
    )  # fmt: skip
    for name, bound in zip((LOWER, UPPER), found, strict=True):
        record[name] = None if bound is None else {PATH: bound}


def of_manifests(draw, record):
    if draw.random() < 0.4:
        for summary in record["partitions"] or ():
            summary["lower_bound"], summary["upper_bound"] = (
                summary["upper_bound"],
                summary["lower_bound"],
            )
    if draw.random() < 0.3:
        for kind in ("added", "existing", "deleted"):
            record[f"{kind}_rows_count"] = draw.choice([0, 1, -1])
    if draw.random() < 0.3:
        for kind in ("added", "existing"):
            if record[f"{kind}_files_count"]:
                record[f"{kind}_files_count"] = draw.choice([1, 1000])
    if draw.random() < 0.1:
        record["partitions"] = None


class Told:
    """A table about which others' metadata is told, beside its rows."""

    def __init__(self, draw, table):
        self.draw, self.table, self.rows, self.next = draw, table, [], 0
        self.written = {}

    def lie(self, kinds=OF_DATA):
        every = []

        def read(record):
            metrics = {name: dict(record[name] or {}) or None for name in (LOWER, UPPER, *COUNTS)}
            every.append(self.written.setdefault(record["file_path"], metrics))

        told_otherwise(self.table, read)

        def file(record):
            # about what was written: of several lies in turn the last may be one that nothing contradicts
            for name, metrics in self.written[record["file_path"]].items():
                record[name] = dict(metrics) if metrics else None
            if record["content"] == 1:
                of_paths(self.draw, record, every)
            elif record["content"] == 0:
                chosen = self.draw.sample(kinds, self.draw.randint(1, 2))
                for lie in chosen if {*chosen} not in UNCONTRADICTED else chosen[:1]:
                    lie(self.draw, record, every)

        self.table = told_otherwise(
            self.table, file, lambda record: of_manifests(self.draw, record)
        )

    def new_rows(self, count):
        draw, found = self.draw, []
        for _ in range(count):
            self.next += 1
            found.append(
                {
                    "id": self.next,
                    "p": draw.choice(["a", "b", "c", None]),
                    "x": draw.choice([None, NAN, -1.5, 0.0, 2.5]),
                    "s": draw.choice([None, *TEXTS]),
                    "d": draw.choice([None, -3, 0, 20000]),
                }
            )
        return found

    def arrow(self, rows):
        days = pa.array([row["d"] for row in rows], pa.int32()).cast(pa.date32())
        plain = [pa.array([row[f.name] for row in rows], f.type) for f in list(ARROW)[:-1]]
        return pa.table([*plain, days], schema=ARROW)

    def filter(self):
        draw = self.draw
        number = draw.randint(0, self.next + 1)
        text = draw.choice(TEXTS)
        choices = [
            (f"id = {number}", lambda r: r["id"] == number),
            (f"id <= {number}", lambda r: r["id"] <= number),
            (f"id in ({number}, 3)", lambda r: r["id"] in {number, 3}),
            (f"id not in ({number}, 3)", lambda r: r["id"] not in {number, 3}),
            ("p = 'b'", lambda r: r["p"] == "b"),
            ("p is null", lambda r: r["p"] is None),
            (f"p >= 'b' and id > {number}", lambda r: r["p"] is not None and r["p"] >= "b" and r["id"] > number),
            ("x is null", lambda r: r["x"] is None),
            ("x is not null", lambda r: r["x"] is not None),
            ("is_nan(x)", lambda r: r["x"] is not None and r["x"] != r["x"]),
            ("x = 0.0", lambda r: r["x"] == 0.0),
            (f"s = '{text}'", lambda r: r["s"] == text),
            ("s like 'long text%'", lambda r: (r["s"] or "").startswith("long text")),
            ("s not like 'z%'", lambda r: r["s"] is not None and not r["s"].startswith("z")),
            ("s > 'b'", lambda r: r["s"] is not None and r["s"] > "b"),
            ("d < date '1970-01-01'", lambda r: r["d"] is not None and r["d"] < 0),
            ("d <> date '1970-01-01'", lambda r: r["d"] is not None and r["d"] != 0),
            (f"d is null or id = {number}", lambda r: r["d"] is None or r["id"] == number),
        ]  # fmt: skip
        return draw.choice(choices)

    def check(self):
        table = self.table = again(self.table)
        assert shown(table.scan().to_arrow()) == shown(self.arrow(self.rows))
        assert table.scan().count() == len(self.rows)
        for _ in range(4):
            text, matches = self.filter()
            wanted = [row for row in self.rows if matches(row)]
            scan = table.scan(text)
            assert shown(scan.to_arrow()) == shown(self.arrow(wanted)), text
            assert scan.count() == len(wanted), text
            for function, choose in ((AggregateFunction.MIN, min), (AggregateFunction.MAX, max)):
                asked = [
                    Aggregate(function, 1),
                    Aggregate(function, 5),
                    Aggregate(AggregateFunction.COUNT, 4),
                ]
                found = scan.known_aggregates(asked)
                days = [row["d"] for row in wanted if row["d"] is not None]
                texts = sum(row["s"] is not None for row in wanted)
                ids = choose([row["id"] for row in wanted], default=None)
                assert found in (None, [(ids, choose(days, default=None), texts)]), text
        for name in (
            "files",
            "entries",
            "manifests",
            "partitions",
            "position_deletes",
            "delete_files",
        ):
            getattr(table.inspect, name)()
        if table.metadata.format_version > 2 and self.rows:
            ids = table.scan(selected_fields=("_row_id",)).to_arrow()["_row_id"].drop_null()
            assert len(ids.unique()) == len(ids)

    def change(self):
        draw, table, maintain = self.draw, self.table, self.table.maintenance
        kind = draw.choice(
            ["append", "delete", "delete", "upsert", "overwrite", "merge", "compact", "manifests", "positions", "upgrade", "expire"]
        )  # fmt: skip
        if kind == "append":
            rows = self.new_rows(draw.randint(1, 4))
            table.append(self.arrow(rows))
            self.rows += rows
        elif kind == "delete":
            text, matches = self.filter()
            mode = draw.choice(["copy-on-write", "merge-on-read"])
            with table.update_properties() as properties:
                properties.set("write.delete.mode", mode)
            table.delete(text)
            self.rows = [row for row in self.rows if not matches(row)]
        elif kind in {"upsert", "merge"}:
            given = self.new_rows(1) + [
                {**row, "x": 9.0} for row in draw.sample(self.rows, min(len(self.rows), 2))
            ]
            if kind == "upsert":
                table.upsert(self.arrow(given), ["id"])
            else:
                merge = table.merge(self.arrow(given), on="t.id = s.id").when_matched_update_all()
                merge.when_not_matched_insert_all().execute()
            named = {row["id"] for row in given}
            self.rows = [row for row in self.rows if row["id"] not in named] + given
        elif kind == "overwrite":
            text, matches = self.filter()
            rows = self.new_rows(1)
            table.overwrite(self.arrow(rows), text)
            self.rows = [row for row in self.rows if not matches(row)] + rows
        elif kind == "compact":
            maintain.rewrite_data_files(options={"rewrite-all": "true"})
        elif kind == "manifests":
            maintain.rewrite_manifests()
        elif kind == "positions":
            maintain.rewrite_position_delete_files(options={"rewrite-all": "true"})
        elif kind == "upgrade":
            version = min(table.metadata.format_version + draw.randint(0, 1), 3)
            with table.update_properties() as properties:
                properties.set("format-version", str(version))
        elif table.snapshots():
            maintain.expire_snapshots().retain_last(1).commit()
        return kind


def shown(table):
    return sorted(map(repr, table.sort_by("id").to_pylist()))


@pytest.mark.seeds(40, gate=1)
def test_rows_are_read_and_changed_whatever_their_metadata_says(tmp_path, seed):
    draw = random.Random(seed)
    with load_catalog("files", type="hadoop", warehouse=f"file:{tmp_path}", **NO_CACHE) as catalog:
        catalog.create_namespace("db")
        properties = {"format-version": draw.choice("223"), "write.delete.mode": "merge-on-read"}
        told = Told(
            draw, catalog.create_table("db.t", SCHEMA, partition_spec=SPEC, properties=properties)
        )
        for _ in range(2):
            rows = told.new_rows(5)
            told.table.append(told.arrow(rows))
            told.rows += rows
        done = []
        for _ in range(3):
            told.lie()
            told.check()
            done.append(told.change())
            told.check()
