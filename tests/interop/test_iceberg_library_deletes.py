"""Deleted rows stay deleted: by position and by value, in every format, by Iceberg Java's library and by us."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import (
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
)
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter
from tests.interop.conftest import ordered
from tests.rings import sampled

FORMATS = ("parquet", "orc", "avro")
SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "k", IntegerType()),
        NestedField(3, "s", StringType()),
        NestedField(4, "d", DoubleType()),
        NestedField(5, "st", StructType((NestedField(6, "x", IntegerType()),))),
    )
)
BY_K = [("identity", "k", "k")]
FILTERS = (
    "id = 2",
    "id = 7",
    "k = 1",
    "k is null",
    "k = 0 and id > 30",
    "s is null",
    "s = 'v24'",
    "d < 10 and k = 1",
    "d is nan",
    "id >= 95",
    "not (id < 70)",
)


def rows(first, last):
    return [
        [
            i,
            i % 2 if i % 7 else None,
            f"v{i}" if i % 5 else None,
            "NaN" if i % 11 == 0 else i / 4,
            [i] if i % 3 else None,
        ]
        for i in range(first, last)
    ]


def frame(first, last):
    columns = [*zip(*rows(first, last), strict=True)]
    struct = pa.struct([("x", pa.int32())])
    return pa.table(
        {
            "id": pa.array(columns[0], pa.int64()),
            "k": pa.array(columns[1], pa.int32()),
            "s": pa.array(columns[2], pa.string()),
            "d": pa.array([float(value) for value in columns[3]], pa.float64()),
            "st": pa.array([None if v is None else {"x": v[0]} for v in columns[4]], struct),
        }
    )


def agreed(library, name, where=None, columns="*"):
    """The rows, from the same data files; none has fewer deletes than Iceberg Java plans for it.

    Iceberg Java also leaves out values that the filter is not true for, and NaN beyond the bounds of the other values.
    """
    tasks = library.load(name).scan().plan_files()
    apart = {
        delete.file_path
        for task in tasks
        for delete in task.delete_files
        if delete.equality_ids and (where or delete.equality_ids == (4,))
    }
    rows = library.agree(name, where, columns, but=["peer"], apart=apart)
    ours = library.plan(name, where)
    for file, deletes in library.iceberg.plan(library.name(name), where).items():
        assert set(deletes) <= set(ours[file])
    return rows


def ids(found):
    return sorted(row[0] for row in found)


def formats(library, name):
    """Of the data files and of the delete files that are planned."""
    planned = library.plan(name)
    deletes = {path for each in planned.values() for path in each}
    return tuple({path.rpartition(".")[2] for path in paths} for paths in (planned, deletes))


@pytest.fixture(scope="module", params=sampled(FORMATS, keep=1))
def by_java(request, library):
    """Deletes by position, a file and a partition each, and by values, between appends of both and under two specs."""
    file_format = request.param
    name = f"java_deletes_{file_format}"
    properties = {"format-version": "2", "write.format.default": file_format}
    table = library.create(name, SCHEMA, BY_K, properties)
    iceberg = library.iceberg
    iceberg.append(table, rows(0, 50))
    library.load(name).append(frame(50, 100))
    iceberg.ask("delta", table, filter="id in (7, 17, 27, 67)", granularity="file")
    iceberg.ask("delta", table, filter="k = 1 and id > 90", granularity="partition")
    values = {"keys": ["id"], "values": [[2], [4], [1000]], "beside": rows(2, 3)[0]}
    iceberg.ask("delta", table, **values, rows=rows(2, 3))
    # Iceberg Java looks only at files between the least and the greatest of the values that are not NaN
    nan = {"keys": ["d"], "values": [["NaN"], [3.0], [20.0]], "beside": rows(2, 3)[0]}
    iceberg.ask("delta", table, **nan)
    two = {"keys": ["s", "k"], "values": [["v24", 0], ["v23", 1], [None, 1]]}
    iceberg.ask("delta", table, **two, beside=rows(1, 2)[0])
    iceberg.ask("delta", table, keys=["k"], values=[[None]], beside=rows(7, 8)[0])
    iceberg.ask("spec", table, changes=[["remove", "k"]])
    iceberg.append(table, rows(100, 110))
    # of all partitions, because the spec has none
    iceberg.ask("delta", table, keys=["s"], values=[["v31"], ["v32"], ["v101"]])
    iceberg.ask("spec", table, changes=[["add", "bucket[2]", "id", "by_id"]])
    library.load(name).append(frame(63, 64))
    iceberg.ask("delta", table, filter="id in (63, 105)", rows=rows(7, 8))
    return name


def kept_by_java():
    """The rows of that table, by definition."""
    kept = [r for r in rows(0, 100) if r[0] not in {7, 17, 27, 67}]
    kept = [r for r in kept if not (r[1] == 1 and r[0] > 90)]
    kept = [r for r in kept if not (r[1] == 0 and r[0] in {2, 4})] + rows(2, 3)
    kept = [r for r in kept if not (r[1] == 0 and r[3] in {"NaN", 3.0, 20.0})]
    kept = [r for r in kept if (r[2], r[1]) not in {("v23", 1), (None, 1)}]
    kept = [r for r in kept if r[1] is not None] + rows(100, 110)
    kept = [r for r in kept if r[2] not in {"v31", "v32", "v101"}]
    return [r for r in kept if r[0] != 105] + rows(7, 8)


def test_rows_are_those_that_iceberg_java_reads(by_java, library):
    assert agreed(library, by_java) == ordered(kept_by_java())
    file_format = by_java.rpartition("_")[2]
    assert formats(library, by_java) == ({file_format}, {file_format})


@pytest.mark.parametrize(
    "filters",
    [
        FILTERS[::3],
        pytest.param(
            [where for at, where in enumerate(FILTERS) if at % 3],
            marks=pytest.mark.full("every third filter is in the gate"),
        ),
    ],
    ids=["some", "others"],
)
def test_filters_and_deletes_go_together(by_java, library, filters):
    for where in filters:
        agreed(library, by_java, where, "id, d")
    for columns in ("st", "d", "id"):
        agreed(library, by_java, columns=columns)


def test_every_snapshot_is_read_as_it_was(by_java, library):
    table = library.load(by_java)
    counts = []
    for snapshot in table.snapshots():
        number = snapshot.snapshot_id
        expected = library.java(by_java, snapshot=number)
        scan = table.scan(snapshot_id=number)
        assert library.arrow_rows(scan.to_arrow()) == expected
        assert scan.count() == len(expected)
        counts.append(len(expected))
    assert counts[:4] == [50, 100, 96, 92]


def test_what_we_compact_and_delete_from_iceberg_java_s_files_stays_deleted(by_java, library):
    """The last of this table: it is another one afterwards."""
    table = library.load(by_java)
    before = library.java(by_java)
    table.delete("id = 106")
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert agreed(library, by_java) == [row for row in before if row[0] != 106]
    library.iceberg.ask("delta", library.name(by_java), filter="id = 107")
    library.iceberg.ask("compact", library.name(by_java))
    found = agreed(library, by_java)
    assert found == [row for row in before if row[0] not in {106, 107}]
    assert not any(library.plan(by_java).values())


@pytest.fixture(scope="module", params=sampled(FORMATS[1:], keep=1))
def by_us(request, library):
    """Deletes by position and by value that icecomb writes between its own appends."""
    file_format = request.param
    name = f"our_deletes_{file_format}"
    properties = {"write.format.default": file_format, "write.delete.mode": "merge-on-read"}
    properties |= {"write.merge.mode": "merge-on-read", "format-version": "2"}
    table = library.catalog.create_table(library.own(name), SCHEMA, properties=properties)
    table.append(frame(0, 60))
    table.append(frame(60, 100))
    table.delete("id in (3, 4, 63)")
    for columns, values in (
        (["id", "s"], frame(10, 12)),
        (["s"], frame(5, 6)),
        (["d"], pa.concat_tables([frame(22, 24), frame(94, 95)])),
    ):
        equal = EqualityDeleteWriter(table.io, table.refresh().metadata, "-".join(columns), columns)
        for batch in values.to_batches():
            equal.write(batch)
        delta = RowDelta(table.io)
        for file in equal.close():
            delta.add_deletes(file)
        table.commit(delta)
    table.refresh()
    changed = frame(8, 10).set_column(2, "s", pa.array(["new", None]))
    assert table.upsert(pa.concat_tables([changed, frame(200, 201)]), ["id"]).rows_updated == 2
    table.append(frame(3, 4))
    return name


def test_iceberg_java_reads_what_we_deleted(by_us, library):
    found = agreed(library, by_us)
    gone = {4, 63, 10, 11, 23, 94, *range(0, 100, 5), *range(0, 100, 11)}
    assert ids(found) == [*(i for i in range(100) if i not in gone), 200]
    assert [row[2] for row in found if row[0] in {8, 9}] == ["new", None]
    file_format = by_us.rpartition("_")[2]
    assert formats(library, by_us) == ({file_format}, {file_format})


def test_iceberg_java_s_filters_and_our_deletes_go_together(by_us, library):
    for where in FILTERS:
        agreed(library, by_us, where, "id, d")


def test_what_iceberg_java_compacts_of_ours_stays_deleted(by_us, library):
    """The last of this table: it is another one afterwards."""
    before = library.java(by_us)
    library.iceberg.ask("compact", library.name(by_us))
    assert agreed(library, by_us) == before
    assert not any(library.plan(by_us).values())


@pytest.mark.parametrize(
    ("mode", "granularity"),
    sampled(
        [
            ("copy-on-write", "file"),
            ("copy-on-write", "partition"),
            ("merge-on-read", "partition"),
            ("merge-on-read", "file"),
        ],
        keep=2,
    ),
)
def test_all_see_the_same_rows_after_each_change(library, mode, granularity):
    name = f"changes_{mode}_{granularity}".replace("-", "_")
    properties = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    properties |= {"write.delete.granularity": granularity, "format-version": "2"}
    java = library.create(name, SCHEMA, BY_K, properties)
    table = library.load(name)
    table.append(frame(0, 20))
    library.iceberg.append(java, rows(20, 40))
    model = set(range(40))

    def check():
        assert ids(library.agree(name)) == sorted(model)

    table.refresh().delete("d > 3 and d < 8 or s is null and id > 30")
    model -= {i for i in range(40) if (i % 11 and 3 < i / 4 < 8) or (i % 5 == 0 and i > 30)}
    check()
    assert table.upsert(frame(2, 4), ["id"]).rows_updated == 0
    result = table.upsert(pa.concat_tables([changed(2, 4), frame(100, 102)]), ["id"])
    assert (result.rows_updated, result.rows_inserted) == (2, 2)
    model |= {100, 101}
    check()
    library.iceberg.ask("delta", java, filter="id in (1, 39)", rows=rows(300, 301))
    model = (model - {1, 39}) | {300}
    check()
    table.refresh().delete("id = 38 or id = 1")
    model -= {38}
    check()
    library.iceberg.ask("overwrite", java, filter="k = 0", rows=rows(400, 401))
    model = {i for i in model if not (i % 7 and i % 2 == 0)} | {400}
    check()
    table.refresh().overwrite(frame(500, 502), "id < 8")
    model = {i for i in model if i >= 8} | {500, 501}
    check()
    library.iceberg.ask("replace_partitions", java, rows=rows(601, 602))
    model = {i for i in model if not (i % 7 and i % 2)} | {601}
    check()
    table.refresh().dynamic_partition_overwrite(frame(700, 701))
    model = {i for i in model if i % 7} | {700}
    check()


def changed(first, last):
    return frame(first, last).set_column(2, "s", pa.array(["changed"] * (last - first)))
