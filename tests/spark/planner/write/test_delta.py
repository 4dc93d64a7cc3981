"""Changes merge-on-read, asked over the planner's methods: where deletes go, and what conflicts."""

from __future__ import annotations

import base64
import itertools
import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from icecomb.format.errors import (
    CommitFailedError,
    ConfigurationError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.operation.overwrite import OverwriteFiles
from icecomb.format.rows.deletes.position_delete_writer import PositionDeleteWriter
from icecomb.format.spec.types import DecimalType
from tests.format.operation.test_conflict import LEVELS, SAID
from tests.rings import sampled
from tests.spark.planner.protocol import NAMESPACE

NUMBERS = itertools.count(1)
ROWS = pa.table({"id": [1, 2, 3], "k": ["a", "a", "b"]})
IN_A = {"op": "eq", "column": ["k"], "type": "string", "value": "a"}
MODES = {f"write.{command}.mode": "merge-on-read" for command in ("delete", "update", "merge")}


@pytest.fixture
def table(catalog):
    """Two files of three rows in partitions by `k`."""
    name = (*NAMESPACE, f"delta{next(NUMBERS)}")
    table = catalog.create_table(name, ROWS.schema, properties=MODES)
    with table.update_spec() as spec:
        spec.add_identity("k")
    table.append(ROWS)
    return table


def set_property(table, key, value):
    with table.update_properties() as update:
        update.set(key, value)


def ids(table):
    return sorted(table.refresh().scan(selected_fields="id").to_arrow()["id"].to_pylist())


class Statement:
    """One that has read the table, and deletes the first row of each file that it is told of."""

    def __init__(self, planner, table, command, *filters, **options):
        self.planner, self.command = planner, command
        self.io, self.metadata = table.io, table.refresh().metadata
        self.data_files = {t.file.file_path: t.file for t in table.scan().plan_files()}
        loaded = planner.load(table.identifier[-1])
        self.reference = loaded["reference"]
        self.change = planner.ask("plan_change", reference=self.reference, command=command)
        self.filters = list(filters)
        self.files = planner.plan(loaded, *filters, changes="rows")["files"]
        self.begun = planner.ask(
            "begin_write",
            reference=self.reference,
            operation="change_rows",
            command=command,
            options=options,
        )

    def deletes(self, files, **more):
        writer = PositionDeleteWriter(self.io, self.metadata, f"op{next(NUMBERS)}")
        for file in files:
            writer.add(self.data_files[file["entry"]["path"]], np.array([0]))
        return [
            {
                "file": {
                    "path": made.file_path,
                    "size": made.file_size_in_bytes,
                    "rows": made.record_count,
                    "partition": [],
                    "split_offsets": [4],
                    "columns": json.dumps(
                        [
                            [
                                number,
                                1,
                                1,
                                0,
                                base64.b64encode(made.lower_bounds[number]).decode(),
                                base64.b64encode(made.upper_bounds[number]).decode(),
                            ]
                            for number in made.lower_bounds
                        ]
                    ),
                },
                "files": [file["entry"]["path"]],
                "deleted": 1,
                "replaces": False,
                "positions": None,
                **more,
            }
            for file, made in zip(files, writer.close(), strict=True)
        ]

    def commit(self, files=None, rows=(), **more):
        """Deletes the first row of all files that were read, or of these."""
        read = self.files if files is None else files
        delta = {
            "reference": self.reference,
            "filters": self.filters,
            "files": [file["entry"] for file in read],
            "deletes": self.deletes(self.files, **more),
        }
        self.planner.ask("commit_write", write=self.begun["write"], files=list(rows), delta=delta)


def test_deletes_go_into_the_partition_of_their_file_whatever_became_of_its_columns(planner, table):
    with table.update_schema() as change:
        change.add_column("price", DecimalType(9, 2))
    with table.update_spec() as spec:
        spec.add_identity("price")
    table.append(pa.table({"id": [4], "k": ["c"], "price": [Decimal("1.50")]}))
    with table.update_spec() as spec:
        spec.remove_field("price")
    with table.update_schema() as change:
        change.delete_column("price")
    statement = Statement(planner, table, "delete")
    places = [file["delete_place"] for file in statement.files]
    assert sorted(place["folder"] for place in places) == ["k=a/", "k=b/", "k=c/price=1.50/"]
    assert len({place["partition"] for place in places}) == 3
    statement.commit()
    assert ids(table) == [2]
    partitions = {
        f["file_path"]: (f["spec_id"], f["partition"]) for f in table.inspect.files().to_pylist()
    }
    for each in table.inspect.delete_files().to_pylist():
        of = each["referenced_data_file"]
        assert partitions[each["file_path"]] == partitions[of]


OTHERS = {
    "write the file anew": lambda table: (
        set_property(table, "write.delete.mode", "copy-on-write"),
        table.delete("id = 2"),
    ),
    "remove the file": lambda table: table.delete("k = 'a'"),
    "delete a row by position": lambda table: table.delete("id = 2"),
    "add rows": lambda table: table.append(pa.table({"id": [7], "k": ["a"]})),
    "add rows elsewhere": lambda table: table.append(pa.table({"id": [7], "k": ["z"]})),
    "delete a row elsewhere": lambda table: table.delete("id = 3"),
}
COLUMNS = {"delete": "delete", "merge": "update"}
"""Of the matrix, by commands."""


@pytest.mark.parametrize(
    ("command", "level", "other"),
    # each of the others, and each command at each level
    sampled([*itertools.product(COLUMNS, LEVELS, OTHERS)], keep=7),
)
def test_what_others_do_meanwhile_is_a_conflict_by_icebergs_rules(
    planner, table, command, level, other
):
    table.append(pa.table({"id": [9], "k": ["b"]}))
    set_property(table, f"write.{command}.isolation-level", level)
    statement = Statement(planner, table, command, IN_A)
    OTHERS[other](table.refresh())
    before = ids(table)
    said = SAID[other, COLUMNS[command]]
    if said == "x" or (said == "s" and level == "serializable"):
        with pytest.raises(ValidationError):
            statement.commit()
        assert ids(table) == before
    else:
        statement.commit()
        assert ids(table) == [i for i in before if i != 1]


def test_new_deletes_take_the_place_of_the_older_ones_of_their_file(planner, table):
    table.delete("id = 2")
    [older] = table.inspect.delete_files()["file_path"].to_pylist()
    statement = Statement(planner, table, "delete", IN_A)
    assert [file["delete_place"]["has_own"] for file in statement.files] == [True]
    [entry] = [file["entry"] for file in statement.files]
    assert [own["path"] for own in entry["own_deletes"]] == [older]
    statement.commit(replaces=True)
    # what the new file has of the older one is the task's to say; this one has nothing of it
    assert ids(table) == [2, 3]
    assert older not in table.inspect.delete_files()["file_path"].to_pylist()


def test_entries_of_a_file_with_different_deletes_are_not_joined(planner, table):
    """The newer entry has a row that the older one has lost: it would lose it, too."""
    [task] = table.scan("k = 'a'").plan_files()
    table.delete("id = 2")
    table.commit(OverwriteFiles(table.io).append_data_file(task.file))
    statement = Statement(planner, table, "delete", IN_A)
    with pytest.raises(ValidationError, match="more than once"):
        statement.commit(replaces=True)
    assert ids(table) == [1, 1, 2, 3]


def test_older_deletes_that_others_have_replaced_meanwhile_are_no_conflict(planner, table):
    table.delete("id = 2")
    one = Statement(planner, table, "delete", IN_A)
    other = Statement(planner, table, "delete", IN_A)
    for statement in (one, other):
        statement.commit(replaces=True)
    assert len(table.refresh().inspect.delete_files()) == 2
    assert ids(table) == [2, 3]


def test_an_update_that_would_lose_or_repeat_rows_is_refused(planner, table):
    statement = Statement(planner, table, "update")
    with pytest.raises(CommitFailedError, match="UPDATE read 2 rows and wrote 0"):
        statement.commit()
    assert ids(table) == [1, 2, 3]


def test_deletes_of_files_that_were_not_read_are_refused(planner, table):
    statement = Statement(planner, table, "delete")
    with pytest.raises(CommitFailedError, match="has not read"):
        statement.commit(statement.files[:1])
    assert ids(table) == [1, 2, 3]


def test_what_reads_nothing_conflicts_with_nothing(planner, table):
    statement = Statement(planner, table, "merge")
    statement.filters, statement.files = None, []
    file = next(iter(statement.data_files.values()))
    row = {"path": f"{file.file_path}.new", "size": 1, "rows": 1, "partition": ["a"],
           "split_offsets": [4], "columns": "[]"}  # fmt: skip
    table.append(ROWS)
    statement.commit(rows=[row])
    assert table.refresh().inspect.data_files()["record_count"].to_pylist().count(1) == 3
    assert table.current_snapshot().operation == "append"


def column_names(fields):
    return [
        next(argument["column"][0] for argument in transform["arguments"] if "column" in argument)
        for transform in fields
    ]


@pytest.mark.parametrize("command", ["delete", "update", "merge"])
def test_rows_are_shared_out_as_the_property_of_the_command_says(planner, table, command):
    new = ["k"] if command != "delete" else []
    begun = Statement(planner, table, command).begun
    assert column_names(begun["distribution"]) == ["_spec_id", "_partition", *new]
    assert (begun["ordering"], begun["ranges"], begun["fanout"]) == ([], [], True)
    set_property(table, "write.spark.fanout.enabled", "false")
    begun = Statement(planner, table, command).begun
    order = ["_spec_id", "_partition", "_icecomb_file", "_pos", *new]
    assert column_names(f["transform"] for f in begun["ordering"]) == order
    assert not begun["fanout"]
    set_property(table, f"write.{command}.distribution-mode", "range")
    begun = Statement(planner, table, command).begun
    assert begun["distribution"] == []
    assert column_names(f["transform"] for f in begun["ranges"]) == [
        "_spec_id", "_partition", *new
    ]  # fmt: skip
    set_property(table, f"write.{command}.distribution-mode", "none")
    set_property(table, "write.spark.fanout.enabled", "true")
    begun = Statement(planner, table, command).begun
    assert (begun["distribution"], begun["ranges"], begun["ordering"]) == ([], [], [])
    assert begun["fanout"]
    with table.update_spec() as spec:
        spec.remove_field("k")
    set_property(table, f"write.{command}.distribution-mode", "hash")
    begun = Statement(planner, table, command).begun
    assert column_names(begun["distribution"]) == ["_spec_id", "_partition", "_icecomb_file"]


@pytest.mark.parametrize(
    ("key", "value", "by_file"),
    [("write.delete.granularity", "partition", False), ("write.delete.granularity", "file", True)],
)
def test_deletes_are_written_as_the_table_says(planner, table, key, value, by_file):
    set_property(table, key, value)
    set_property(table, "write.delete.target-file-size-bytes", "12345")
    set_property(table, "write.delete.parquet.compression-codec", "snappy")
    deletes = Statement(planner, table, "delete").begun["deletes"]
    assert deletes["by_file"] is by_file
    files = deletes["files"]
    assert (files["format"], files["target_bytes"]) == ("parquet", 12345)
    assert files["writer"]["compression"] == "snappy"
    assert files["metrics"] == {"2147483545": "full", "2147483546": "full"}


def test_deletes_have_their_own_format_and_its_settings(planner, table):
    set_property(table, "write.format.default", "avro")
    begun = Statement(planner, table, "merge").begun
    assert (begun["files"]["format"], begun["deletes"]["files"]["format"]) == ("avro", "avro")
    set_property(table, "write.delete.format.default", "orc")
    set_property(table, "write.delete.orc.compression-codec", "zstd")
    begun = Statement(planner, table, "merge").begun
    deletes = begun["deletes"]["files"]
    assert deletes["file_schema"] == "struct<`file_path`:string,`pos`:bigint>"
    assert deletes["attributes"] == [
        {},
        {"iceberg.id": "2147483546", "iceberg.required": "true"},
        {"iceberg.id": "2147483545", "iceberg.required": "true", "iceberg.long-type": "LONG"},
    ]
    assert deletes["writer"]["orc.compress"] == "ZSTD"
    options = {"Delete-Format": "parquet", "write-format": "orc", "compression-codec": "snappy"}
    begun = Statement(planner, table, "merge", **options).begun
    assert begun["deletes"]["files"]["writer"]["compression"] == "snappy"
    assert begun["files"]["writer"]["orc.compress"] == "SNAPPY"


def test_what_cannot_be_merged_on_read_is_refused_with_a_way_out(planner, table, catalog):
    old = catalog.create_table(
        (*NAMESPACE, f"delta{next(NUMBERS)}"),
        ROWS.schema,
        properties={**MODES, "format-version": "1"},
    )
    with pytest.raises(ConfigurationError, match="format version 1") as refused:
        Statement(planner, old, "update")
    assert "copy-on-write" in refused.value.hint


@pytest.mark.parametrize(
    ("column", "properties", "way_out"),
    [
        ("_Icecomb_File", MODES, "Rename the column."),
        ("_icecomb_file", {}, "Rename the column."),
        ("_pos", MODES, "Rename the column, or set write.merge.mode to copy-on-write."),
        ("_pos", {}, None),
    ],
)
def test_a_column_that_hides_where_rows_are_is_refused_where_that_is_asked(
    planner, catalog, column, properties, way_out
):
    table = catalog.create_table(
        (*NAMESPACE, f"delta{next(NUMBERS)}"),
        pa.schema([("id", pa.int64()), (column, pa.string())]),
        properties=properties,
    )
    if way_out is None:
        Statement(planner, table, "merge")
    else:
        with pytest.raises(UnsupportedError, match=f"column {column} hides") as refused:
            Statement(planner, table, "merge")
        assert refused.value.hint == way_out


def test_options_go_before_settings_and_these_before_properties(planner, table):
    prefix = "spark.sql.iceberg."
    settings = {f"{prefix}distribution-mode": "none", f"{prefix}compression-codec": "snappy"}
    reference = planner.load(table.identifier[-1])["reference"]

    def begun(**options):
        return planner.ask(
            "begin_write",
            reference=reference,
            operation="append",
            options=options,
            settings=settings,
        )

    assert begun()["distribution"] == []
    assert begun()["files"]["writer"]["compression"] == "snappy"
    said = begun(**{"Distribution-Mode": "hash", "compression-codec": "gzip"})
    assert column_names(said["distribution"]) == ["k"]
    assert said["files"]["writer"]["compression"] == "gzip"
    settings.clear()
    assert column_names(begun()["distribution"]) == ["k"]
    said = begun(**{"use-table-distribution-and-ordering": "false"})
    assert (said["distribution"], said["ordering"], said["advisory_bytes"]) == ([], [], None)
    assert begun(**{"advisory-partition-size": "77"})["advisory_bytes"] == 77
