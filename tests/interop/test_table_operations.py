"""What icecomb deletes, overwrites and upserts, Iceberg Java and PyIceberg read; and Java goes on from there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from icecomb.format.maintenance import file_rewriter
from icecomb.format.maintenance.file_rewriter import FileRewriter
from icecomb.format.rows.write import row_sort
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import parse_transform

if TYPE_CHECKING:
    from pathlib import Path

    from icecomb.catalog.catalog import Catalog
    from icecomb.catalog.table.table import Table

pytestmark = pytest.mark.full("Iceberg Java in a second Spark")

NAMESPACE = "table_operations"
SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string()), ("x", pa.float64())])
BY_TEXT = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "s"),))
MERGE = {"write.delete.mode": "merge-on-read", "write.merge.mode": "merge-on-read"}
ROWS = [(i, "ab"[i % 2] if i % 5 else None, None if i % 4 == 0 else i / 2) for i in range(40)]


def frame(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


@pytest.fixture(scope="module")
def create(catalog: Catalog) -> Iterator[Callable[..., Table]]:
    made: list[str] = []
    catalog.create_namespace(NAMESPACE)

    def table(name: str, spec: PartitionSpec = BY_TEXT, **properties: str) -> Table:
        made.append(f"{NAMESPACE}.{name}")
        found = catalog.create_table(
            made[-1], SCHEMA, partition_spec=spec, properties={"format-version": "2", **properties}
        )
        found.append(frame(ROWS[:20]))
        found.append(frame(ROWS[20:]))
        return found

    yield table
    for name in made:
        catalog.drop_table(name)
    catalog.drop_namespace(NAMESPACE)


@pytest.fixture(scope="module")
def agreed(iceberg_java: Any, pyiceberg: Any) -> Callable[[Table], list[tuple[Any, ...]]]:
    """The rows of a table by id, which all three implementations read alike."""

    def read(table: Table) -> list[tuple[Any, ...]]:
        def listed(arrow: pa.Table) -> list[tuple[Any, ...]]:
            return [tuple(r.values()) for r in arrow.sort_by("id").to_pylist()]

        ours = listed(table.refresh().scan().to_arrow())
        name = ".".join(table.identifier)
        java = iceberg_java.sql(f"SELECT id, s, x FROM ice.{name} ORDER BY id")
        assert [tuple(row) for row in java] == ours
        assert listed(pyiceberg.load_table(name).scan().to_arrow()) == ours
        return ours

    return read


@pytest.mark.parametrize("granularity", ["file", "partition"])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_all_see_the_same_rows_after_each_operation(
    create: Callable[..., Table],
    agreed: Callable[[Table], list[tuple[Any, ...]]],
    iceberg_java: Any,
    mode: str,
    granularity: str,
) -> None:
    properties = dict.fromkeys(MERGE, mode) | {"write.delete.granularity": granularity}
    name = f"t_{mode}_{granularity}".replace("-", "_")
    table = create(name, **properties)
    model = {row[0]: row for row in ROWS}
    table.delete("x > 3 and x < 8 or s is null and id > 30")
    for i, s, x in ROWS:
        if (x is not None and 3 < x < 8) or (s is None and i > 30):
            del model[i]
    assert agreed(table) == sorted(model.values())
    new = [(1, "new", 1.0), (2, None, None), (13, "b", 6.5), (100, "a", 1.0)]
    result = table.upsert(frame(new), ["id"])
    assert (result.rows_updated, result.rows_inserted) == (2, 2)
    model |= {row[0]: row for row in new}
    assert agreed(table) == sorted(model.values())
    iceberg_java.sql(f"DELETE FROM ice.{NAMESPACE}.{name} WHERE id IN (1, 20)")
    table.refresh().delete("id = 21 or id = 1")
    for i in (1, 20, 21):
        model.pop(i)
    assert agreed(table) == sorted(model.values())
    table.overwrite(frame([(7, "a", 7.0), (500, "z", None)]), "id < 8")
    model = {i: row for i, row in model.items() if i >= 8}
    model |= {7: (7, "a", 7.0), 500: (500, "z", None)}
    assert agreed(table) == sorted(model.values())
    table.dynamic_partition_overwrite(frame([(600, "a", 0.5)]))
    model = {i: row for i, row in model.items() if row[1] != "a"}
    model[600] = (600, "a", 0.5)
    assert agreed(table) == sorted(model.values())


def test_java_compacts_a_table_that_has_our_position_deletes(
    create: Callable[..., Table],
    agreed: Callable[[Table], list[tuple[Any, ...]]],
    iceberg_java: Any,
) -> None:
    table = create("compacted", **MERGE)
    table.delete("id in (3, 6, 9, 12, 33)")
    before = agreed(table)
    assert len(before) == 35
    deletes = f"SELECT count(*) FROM ice.{NAMESPACE}.compacted.delete_files"
    assert iceberg_java.sql(deletes)[0][0] > 0
    rewritten = iceberg_java.sql(
        f"CALL ice.system.rewrite_data_files(table => '{NAMESPACE}.compacted', "
        "options => map('rewrite-all', 'true'))"
    )
    assert rewritten[0][0] > 0
    assert agreed(table) == before
    assert all(not task.delete_files for task in table.scan().plan_files())


def test_all_read_what_is_compacted_while_java_deletes_rows(
    create: Callable[..., Table],
    agreed: Callable[[Table], list[tuple[Any, ...]]],
    iceberg_java: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = create("compacted_meanwhile", **MERGE, **{"write.delete.format.default": "parquet"})
    table.delete("id in (3, 6, 33)")
    rewrite, lock, numbers = FileRewriter.rewrite, threading.Lock(), set[int]()

    def rewritten(self: Any, number: int, *given: Any) -> Any:
        found = rewrite(self, number, *given)
        with lock:
            if not numbers:
                iceberg_java.sql(f"DELETE FROM ice.{NAMESPACE}.compacted_meanwhile WHERE id = 7")
            numbers.add(number)
        return found

    monkeypatch.setattr(FileRewriter, "rewrite", rewritten)
    done = table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert numbers == {1, 2, 3}
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (6, 3)
    assert [row[0] for row in agreed(table)] == [i for i in range(40) if i not in {3, 6, 7, 33}]


def test_all_read_a_group_that_was_sorted_on_disk(
    create: Callable[..., Table],
    agreed: Callable[[Table], list[tuple[Any, ...]]],
    iceberg_java: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = create("sorted_on_disk", PartitionSpec(0, ()), **MERGE)
    for first in range(100, 160, 10):
        table.append(frame([(i, "abc"[i % 3], i / 4) for i in range(first, first + 10)]))
    table.delete("id in (3, 104, 158)")
    before = agreed(table)
    assert len(before) == 97
    spilled: list[Path] = []
    write = row_sort.write_run

    def counted(path: Path, batches: Any) -> Any:
        spilled.append(path)
        return write(path, batches)

    for module in (row_sort, file_rewriter):
        monkeypatch.setattr(module, "RUN_BYTES", 500)
    monkeypatch.setattr(row_sort, "write_run", counted)
    table.maintenance.rewrite_data_files(
        sort_order="s DESC NULLS LAST, x ASC NULLS FIRST", options={"rewrite-all": "true"}
    )
    assert len(spilled) > 1
    assert agreed(table) == before
    sorted_by_java = iceberg_java.sql(
        f"SELECT id FROM ice.{NAMESPACE}.sorted_on_disk ORDER BY s DESC NULLS LAST, x, id"
    )
    as_stored = f"SELECT id FROM ice.{NAMESPACE}.sorted_on_disk ORDER BY _pos"
    places = {id_: place for place, (id_,) in enumerate(iceberg_java.sql(as_stored))}
    keys = {id_: (s, x) for id_, s, x in before}
    stored = [keys[id_] for id_ in places]
    assert stored == [keys[id_] for (id_,) in sorted_by_java]


def test_java_reads_files_that_we_took_in(
    create: Callable[..., Table],
    agreed: Callable[[Table], list[tuple[Any, ...]]],
    tmp_path: Path,
) -> None:
    table = create("added")
    folder = tmp_path / "s=c%2Fd"
    folder.mkdir()
    pq.write_table(frame([(900, "", 1.0)]).drop_columns(["s"]), folder / "x.parquet")
    pq.write_table(frame([(901, "a", None)]), tmp_path / "y.parquet")
    table.add_files([str(folder / "x.parquet"), str(tmp_path / "y.parquet")])
    assert agreed(table)[-2:] == [(900, "c/d", 1.0), (901, "a", None)]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_merge_leaves_the_rows_that_the_same_statement_of_spark_leaves(
    create: Callable[..., Table],
    agreed: Callable[[Table], list[tuple[Any, ...]]],
    iceberg_java: Any,
    mode: str,
) -> None:
    ours, theirs = f"m_{mode[:4]}_ours", f"m_{mode[:4]}_theirs"
    table = create(ours, **dict.fromkeys(MERGE, mode))
    create(theirs, **dict.fromkeys(MERGE, mode))
    source = [
        (1, "b", 0.75, "D"), (2, "a", 5.0, "U"), (3, None, 9.0, "U"), (4, "a", 5.0, "D"),
        (5, "a", 9.0, "U"), (10, "c", 99.0, None), (11, "c", 0.0, "U"), (14, "a", 8.0, "?"),
        (100, "a", 1.0, "U"), (101, "a", 1.0, "D"), (102, "a", 1.0, None), (103, None, None, "U"),
    ]  # fmt: skip
    values = ", ".join(
        f"({i}, {_sql(s)}, CAST({_sql(x)} AS DOUBLE), {_sql(op)})" for i, s, x, op in source
    )
    iceberg_java.sql(
        f"MERGE INTO ice.{NAMESPACE}.{theirs} t USING "
        f"(SELECT * FROM VALUES {values} AS v(id, s, x, op)) s ON t.id = s.id AND t.x < s.x "
        "WHEN MATCHED AND s.op = 'D' THEN DELETE "
        "WHEN MATCHED AND t.s IS NULL OR s.op <> 'U' THEN UPDATE SET t.x = t.x + s.x "
        "WHEN MATCHED THEN UPDATE SET t.s = s.s, t.x = s.x "
        "WHEN NOT MATCHED AND s.op = 'U' THEN INSERT (id, s, x) VALUES (s.id + 1000, s.s, s.x) "
        "WHEN NOT MATCHED BY SOURCE AND t.id > 30 THEN UPDATE SET t.s = concat(t.s, '!') "
        "WHEN NOT MATCHED BY SOURCE AND t.x < 4 THEN DELETE"
    )
    columns = list(zip(*source, strict=True))
    data = pa.table([*map(pa.array, columns)], [*SCHEMA.names, "op"])
    (
        table.merge(data, "t.id = s.id AND t.x < s.x")
        .when_matched_delete("s.op = 'D'")
        .when_matched_update({"x": "t.x + s.x"}, "t.s IS NULL OR s.op <> 'U'")
        .when_matched_update_all(except_cols=["id"])
        .when_not_matched_insert({"id": "s.id + 1000", "s": "s.s", "x": "s.x"}, "s.op = 'U'")
        .when_not_matched_by_source_update({"s": "t.s || '!'"}, "t.id > 30")
        .when_not_matched_by_source_delete("t.x < 4")
        .execute()
    )
    java = iceberg_java.sql(f"SELECT id, s, x FROM ice.{NAMESPACE}.{theirs} ORDER BY id")
    assert agreed(table) == [tuple(row) for row in java]


def test_java_reads_orc_and_avro_files_that_we_took_in(
    create: Callable[..., Table],
    agreed: Callable[[Table], list[tuple[Any, ...]]],
    iceberg_java: Any,
    tmp_path: Path,
) -> None:
    table = create("other_formats")
    rows = [(i, "a", i / 2) for i in range(700, 705)]
    orc.write_table(frame(rows), tmp_path / "000000_0")
    table.add_files([str(tmp_path / "000000_0")])
    assert agreed(table)[-5:] == rows
    folder = tmp_path / "s=b+1%25"
    folder.mkdir()
    columns = [{"name": "id", "type": "long"}, {"name": "x", "type": ["null", "double"]}]
    schema = {"type": "record", "name": "row", "fields": columns}
    with (folder / "x.avro").open("wb") as out:
        fastavro.writer(out, schema, [{"id": 800, "x": None}, {"id": 801, "x": 2.5}])
    table.add_files([str(folder / "x.avro")])
    expected = [[800, "b+1%", None], [801, "b+1%", 2.5]]
    name = f"ice.{NAMESPACE}.other_formats"
    assert iceberg_java.sql(f"SELECT * FROM {name} WHERE id >= 800 ORDER BY id") == expected
    ours = table.scan("s = 'b+1%'").to_arrow().sort_by("id").to_pylist()
    assert [list(row.values()) for row in ours] == expected


def _sql(value: Any) -> str:
    return "NULL" if value is None else repr(value)
