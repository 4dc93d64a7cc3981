"""Tables with files that have no field ids: which column is which is decided by ids all the same."""

from __future__ import annotations

import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from pyarrow import orc
from pyiceberg.table import StaticTable

from icecomb.catalog import load_catalog
from icecomb.format.errors import SchemaError, ValidationError
from icecomb.format.spec.types import LongType, StringType

FORMATS = ("parquet", "orc", "avro")
INNER = pa.struct([("x", pa.string()), ("y", pa.string())])
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("v", pa.string()),
        ("w", pa.string()),
        ("s", INNER),
        ("l", pa.list_(INNER)),
        ("m", pa.map_(pa.string(), INNER)),
    ]
)
FLAT = pa.schema(list(SCHEMA)[:3])
INSIDE = {"x": "x0", "y": "y0"}
ROWS = [
    {"id": 0, "v": "v0", "w": "w0", "s": INSIDE, "l": [INSIDE], "m": [("k", INSIDE)]},
    {"id": 1, "v": None, "w": "w1", "s": None, "l": None, "m": None},
]


def file_without_ids(path: Path, kind: str, data: pa.Table) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "parquet":
        pq.write_table(data, path)
    elif kind == "orc":
        orc.write_table(data, path)
    else:
        counter = itertools.count()
        fields = [{"name": f.name, "type": avro_type(f.type, counter)} for f in data.schema]
        rows = [{k: avro_value(v) for k, v in row.items()} for row in data.to_pylist()]
        with path.open("wb") as out:
            fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, rows)
    return str(path)


def avro_type(kind: pa.DataType, counter: itertools.count[int]) -> list[Any]:
    if pa.types.is_struct(kind):
        fields = [{"name": f.name, "type": avro_type(f.type, counter)} for f in kind]
        return ["null", {"type": "record", "name": f"r{next(counter)}", "fields": fields}]
    if pa.types.is_map(kind):
        return ["null", {"type": "map", "values": avro_type(kind.item_type, counter)}]
    if pa.types.is_list(kind):
        return ["null", {"type": "array", "items": avro_type(kind.value_type, counter)}]
    return ["null", "long" if kind == pa.int64() else "string"]


def avro_value(value: Any) -> Any:
    pairs = isinstance(value, list) and value and isinstance(value[0], tuple)
    return dict(value) if pairs else value


def rows(table: Any, *, peer: bool = True) -> list[dict[str, Any]]:
    """The rows by id, as icecomb and PyIceberg read them."""
    found = sorted(table.refresh().scan().to_arrow().to_pylist(), key=lambda r: r["id"])
    if peer:
        other = StaticTable.from_metadata(table.metadata_location).scan().to_arrow().to_pylist()
        other.sort(key=lambda r: r["id"])
        assert [emptied(r) for r in other] == [emptied(r) for r in found]
    return found


def emptied(row: dict[str, Any]) -> dict[str, Any]:
    """PyIceberg reads lists and maps that are null as empty ones, at times."""
    return {k: [] if k in ("l", "m") and v is None else v for k, v in row.items()}


def change(table: Any, *steps: tuple[Any, ...]) -> None:
    with table.update_schema() as update:
        for name, *arguments in steps:
            getattr(update, name)(*arguments)


@pytest.fixture(params=FORMATS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def table(lake: Any, tmp_path: Path, kind: str) -> Any:
    made = lake.create_table("db.t", SCHEMA, properties={"format-version": "2"})
    data = pa.Table.from_pylist(ROWS, SCHEMA)
    made.add_files([file_without_ids(tmp_path / "in" / "f", kind, data)])
    return made


DROP_ADD = [("delete_column", "v"), ("add_column", "v", StringType())]
RETYPE = [("delete_column", "v"), ("add_column", "v", LongType())]


@pytest.mark.parametrize("steps", [DROP_ADD, RETYPE], ids=["same type", "other type"])
def test_a_column_that_was_dropped_and_added_again_is_null_in_older_rows(table, kind, steps):
    then = table.current_snapshot().snapshot_id
    for step in steps:
        change(table, step)
    peer = kind != "avro"
    assert [(r["v"], r["w"]) for r in rows(table, peer=peer)] == [(None, "w0"), (None, "w1")]
    assert table.scan("v is not null").count() == 0
    value = "new" if steps is DROP_ADD else 5
    added = pa.table({"id": [2], "v": [value]})
    table.append(added)
    assert [r["v"] for r in rows(table, peer=peer)] == [None, None, value]
    table.delete("v is not null")
    assert [r["id"] for r in rows(table, peer=peer)] == [0, 1]
    assert [r["v"] for r in table.scan(snapshot_id=then).to_arrow().to_pylist()] == ["v0", None]


def test_a_renamed_column_keeps_its_rows_when_another_gets_its_name(table, kind):
    change(table, ("rename_column", "v", "b"))
    change(table, ("add_column", "v", StringType()))
    change(table, ("update_column", "v", None, None, "doc of the new one"))
    peer = kind != "avro"
    assert [(r["v"], r["b"]) for r in rows(table, peer=peer)] == [(None, "v0"), (None, None)]
    assert table.scan("b is null").count() == 1
    assert table.scan("v is null and b = 'v0'").count() == 1
    table.delete("v is not null")
    assert len(rows(table, peer=peer)) == 2
    table.delete("b is not null")
    assert [r["id"] for r in rows(table, peer=peer)] == [1]


def test_columns_that_swap_their_names_swap_them_in_older_files(table, kind):
    change(table, ("rename_column", "v", "w"), ("rename_column", "w", "v"))
    found = rows(table, peer=kind != "avro")
    assert [(r["v"], r["w"]) for r in found] == [("w0", "v0"), ("w1", None)]
    table.delete("v = 'w0' and w = 'v0'")
    assert [(r["v"], r["w"]) for r in rows(table, peer=False)] == [("w1", None)]


@pytest.mark.parametrize("path", ["s", "l.element", "m.value"])
def test_ids_decide_inside_structs_lists_and_maps(table, kind, path):
    at = tuple(path.split("."))
    change(table, ("delete_column", (*at, "x")), ("rename_column", (*at, "y"), "b"))
    change(table, ("add_column", (*at, "x"), LongType()), ("add_column", (*at, "y"), StringType()))
    held, other = (row[at[0]] for row in rows(table, peer=kind != "avro"))
    inner = held if path == "s" else held[0] if path == "l.element" else held[0][1]
    assert inner == {"b": "y0", "x": None, "y": None}
    assert other is None


def test_names_that_differ_in_case_stand_for_the_columns_that_have_them(table, kind):
    change(table, ("delete_column", "v"), ("add_column", "V", StringType()))
    assert [r["V"] for r in rows(table, peer=kind != "avro")] == [None, None]


def test_a_replaced_table_reads_older_snapshots_by_the_ids_of_that_time(lake, table, kind):
    then = table.current_snapshot().snapshot_id
    other = pa.schema([("id", pa.int64()), ("w", pa.string()), ("u", pa.string())])
    table = lake.replace_table("db.t", other)
    change(table, ("add_column", "v", LongType()))
    table.append(pa.table({"id": [7], "u": ["u"], "v": [1]}))
    assert rows(table, peer=False) == [{"id": 7, "w": None, "u": "u", "v": 1}]
    assert [r["v"] for r in table.scan(snapshot_id=then).to_arrow().to_pylist()] == ["v0", None]


@pytest.mark.parametrize(
    ("steps", "columns", "column"),
    [
        ([("delete_column", "v"), ("add_column", "v", StringType())], ("id", "v"), "v"),
        ([("rename_column", "v", "w"), ("rename_column", "w", "v")], ("id", "v", "w"), "v"),
        ([("delete_column", "s.x"), ("add_column", ("s", "x"), StringType())], ("id", "s"), "s.x"),
        (
            [("delete_column", "l.x"), ("add_column", ("l", "x"), StringType())],
            ("id", "l"),
            "l.element.x",
        ),
        (
            [("delete_column", "m.x"), ("add_column", ("m", "x"), StringType())],
            ("id", "m"),
            "m.value.x",
        ),
    ],
)
def test_files_without_ids_whose_names_mean_another_column_are_refused_with_a_remedy(
    table, kind, tmp_path, steps, columns, column
):
    change(table, *steps)
    data = pa.Table.from_pylist(ROWS, SCHEMA).select(columns)
    path = file_without_ids(tmp_path / "late", kind, data)
    message = f"column '{column}': in files without field ids the name"
    with pytest.raises(SchemaError, match=message) as error:
        table.add_files([path])
    assert "rename its column" in error.value.hint
    if column == "v":
        table.append(data)
        assert len(rows(table, peer=False)) == 4


def test_a_name_that_is_new_to_the_table_can_be_added_by(table, kind, tmp_path):
    change(table, ("rename_column", "v", "b"), ("add_column", "n", LongType()))
    data = pa.table({"id": [2], "b": ["b2"], "n": [5]})
    table.add_files([file_without_ids(tmp_path / "late", kind, data)])
    found = rows(table, peer=kind != "avro")
    assert [(r["b"], r["n"]) for r in found] == [("v0", None), (None, None), ("b2", 5)]


def test_two_names_of_one_column_in_one_file_are_refused(table, kind, tmp_path):
    change(table, ("rename_column", "v", "b"))
    data = pa.table({"id": [2], "v": ["v2"], "b": ["b2"]})
    with pytest.raises(SchemaError, match="columns v and b, which are one"):
        table.add_files([file_without_ids(tmp_path / "late", kind, data)])


def test_a_schema_that_changes_while_files_are_added_does_not_change_what_they_mean(
    lake, tmp_path, kind
):
    data = pa.table({"id": [1], "v": ["v1"], "w": ["w1"]})
    for number, others in enumerate(
        (
            [[("rename_column", "v", "b")], [("add_column", "v", StringType())]],
            [[("delete_column", "v")], [("add_column", "x", LongType())]],
            [[("rename_column", "v", "w"), ("rename_column", "w", "v")]],
        )
    ):
        table = lake.create_table(f"db.t{number}", FLAT)
        late = lake.load_table(f"db.t{number}")
        ids = {f.name: f.field_id for f in table.schema().fields}
        for steps in others:
            change(table, *steps)
        late.add_files([file_without_ids(tmp_path / f"f{number}", kind, data)])
        (row,) = late.scan().to_arrow().to_pylist()
        names = {f.name: f.field_id for f in late.schema().fields}
        expected = {i: value for name, i in ids.items() for value in data[name].to_pylist()}
        assert row == {name: expected.get(i) for name, i in names.items()}


def test_names_that_others_gave_away_while_files_were_added_are_refused(lake, tmp_path, kind):
    table = lake.create_table("db.t", FLAT)
    late = lake.load_table("db.t")
    change(table, ("delete_column", "v"), ("add_column", "v", StringType()))
    data = pa.table({"id": [1], "v": ["v1"]})
    table.add_files([file_without_ids(tmp_path / "one", kind, data)])
    with pytest.raises(
        ValidationError, match=r"column 'v' is string \(id 4\), the rows have string"
    ):
        late.add_files([file_without_ids(tmp_path / "two", kind, data)])
    assert [r["v"] for r in rows(table, peer=False)] == ["v1"]
    table.add_files([str(tmp_path / "two")])
    assert [r["v"] for r in rows(table, peer=False)] == ["v1", "v1"]


def test_a_change_of_the_schema_takes_the_name_mapping_that_others_committed(lake, tmp_path, kind):
    table = lake.create_table("db.t", FLAT)
    data = pa.table({"id": [1], "v": ["v1"]})
    late = lake.load_table("db.t").update_schema().rename_column("v", "b")
    table.add_files([file_without_ids(tmp_path / "one", kind, data)])
    late.commit()
    mapping = json.loads(table.refresh().properties["schema.name-mapping.default"])
    assert [m["names"] for m in mapping] == [["id"], ["v", "b"], ["w"]]
    assert [r["b"] for r in rows(table, peer=False)] == ["v1"]


def test_in_a_transaction_names_stand_for_the_columns_of_their_moment(lake, tmp_path, kind):
    table = lake.create_table("db.t", FLAT)
    data = pa.table({"id": [1], "v": ["v1"]})
    early, late = (file_without_ids(tmp_path / name, kind, data) for name in ("early", "late"))
    with table.transaction() as transaction:
        change(transaction, ("delete_column", "w"), ("add_column", "w", LongType()))
        transaction.add_files([early])
        change(transaction, ("rename_column", "v", "b"))
        change(transaction, ("add_column", "v", StringType()))
        with pytest.raises(SchemaError, match="stands for an older column"):
            transaction.add_files([late])
        transaction.append(pa.table({"id": [2], "v": ["v2"]}))
    assert [(r["b"], r["v"]) for r in rows(table, peer=False)] == [("v1", None), (None, "v2")]


def test_a_transaction_that_is_tried_again_keeps_what_its_files_mean(lake, tmp_path, kind):
    table = lake.create_table("db.t", FLAT)
    data = pa.table({"id": [1], "v": ["v1"], "w": ["w1"]})
    transaction = lake.load_table("db.t").transaction()
    transaction.add_files([file_without_ids(tmp_path / "f", kind, data)])
    change(table, ("rename_column", "v", "w"), ("rename_column", "w", "v"))
    transaction.commit_transaction()
    assert [(r["v"], r["w"]) for r in rows(table, peer=False)] == [("w1", "v1")]


def test_columns_that_an_append_adds_take_no_name_of_a_dropped_one(table, kind):
    change(table, ("delete_column", "v"))
    table.append(pa.table({"id": [2], "v": [7]}), merge_schema=True)
    assert [r["v"] for r in rows(table, peer=False)] == [None, None, 7]


NAMES = st.sampled_from(["a", "b", "c", "d"])
STEPS = st.one_of(
    st.tuples(st.just("add"), NAMES, st.booleans()),
    st.tuples(st.just("drop"), NAMES),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.just("swap"), NAMES, NAMES),
    st.tuples(st.just("append"), st.sets(NAMES)),
    st.tuples(st.just("add files"), st.sets(NAMES)),
    st.tuples(st.just("delete"), NAMES),
)


class Model:
    """Rows as values by field id, and which field a name of a file without ids stands for."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.rows: list[dict[int, Any]] = []
        self.owners: dict[str, int] | None = None
        self.number = itertools.count(1)

    @property
    def columns(self) -> dict[str, int]:
        return {f.name: f.field_id for f in self.table.schema().fields}

    def data(self, names: set[str]) -> tuple[pa.Table, dict[int, Any]]:
        number = next(self.number)
        types = {f.name: f.type for f in self.table.schema().as_arrow()}
        row = {
            name: number if types[name] == pa.int64() else f"{name}{number}"
            for name in ("id", *sorted(names & set(types)))
        }
        schema = pa.schema([(name, types[name]) for name in row])
        columns = self.columns
        return pa.Table.from_pylist([row], schema), {columns[n]: v for n, v in row.items()}

    def do(self, folder: Path, kind: str, name: str, *given: Any) -> None:
        columns = self.columns
        if name == "add":
            if given[0] not in columns:
                change(
                    self.table,
                    ("add_column", given[0], StringType() if given[1] else LongType()),
                )
        elif name == "drop":
            if given[0] in columns:
                change(self.table, ("delete_column", given[0]))
        elif name in ("rename", "swap"):
            old, new = given
            if old in columns and (new not in columns) is (name == "rename"):
                back = [("rename_column", new, old)] if name == "swap" and new != old else []
                change(self.table, ("rename_column", old, new), *back)
        elif name == "append":
            data, row = self.data(*given)
            self.table.append(data)
            self.rows.append(row)
        elif name == "add files":
            self.add_files(folder, kind, *given)
        elif given[0] in columns:
            self.table.delete(f"{given[0]} is not null")
            self.rows = [r for r in self.rows if r.get(columns[given[0]]) is None]
        if self.owners is not None:
            for column, field_id in self.columns.items():
                if columns.get(column) != field_id:
                    self.owners.setdefault(column, field_id)

    def add_files(self, folder: Path, kind: str, names: set[str]) -> None:
        data, row = self.data(names)
        path = file_without_ids(folder / f"f{next(self.number)}", kind, data)
        columns = self.columns
        owners = columns if self.owners is None else self.owners
        if any(owners[name] != columns[name] for name in data.column_names):
            with pytest.raises(SchemaError, match="stands for an older column"):
                self.table.add_files([path])
            return
        self.table.add_files([path])
        self.rows.append(row)
        self.owners = owners

    def expected(self) -> list[dict[str, Any]]:
        columns = self.columns
        return [{name: row.get(i) for name, i in columns.items()} for row in self.rows]


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(FORMATS), st.lists(STEPS, min_size=3, max_size=12))
def test_whatever_happens_to_the_schema_ids_decide(kind: str, steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        lake = load_catalog("lake", type="hadoop", warehouse=str(folder / "lake"))
        lake.create_namespace("db")
        first = pa.schema([("id", pa.int64()), ("a", pa.string()), ("b", pa.int64())])
        model = Model(lake.create_table("db.t", first, properties={"format-version": "2"}))
        for step in (("add files", {"a", "b"}), *steps):
            model.do(folder / "in", kind, *step)
            assert rows(model.table, peer=kind == "parquet") == model.expected()
        for name, field_id in model.columns.items():
            nulls = sum(row.get(field_id) is None for row in model.rows)
            assert model.table.scan(f"{name} is null").count() == nulls
        lake.close()
