"""Tables that were replaced by columns of other types: what one writes, before and after, the others read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.format.errors import ValidationError
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
)
from tests.interop.conftest import arrow_rows, ordered


def schema(kind):
    """A column of a type, and the same inside of a struct and of a list."""
    inner = StructType((NestedField(4, "y", kind), NestedField(5, "z", LongType())))
    return Schema(
        (
            NestedField(1, "id", LongType()),
            NestedField(2, "x", kind),
            NestedField(3, "s", inner),
            NestedField(6, "l", ListType(7, kind)),
        )
    )


OLD, NEW = schema(LongType()), schema(StringType())
BY_X = PartitionSpec(PartitionField(2, 1000, parse_transform("identity"), "x"))
OLD_ROWS = [[i, i * 10, [i, i], [i, i]] for i in (1, 2)]
NEW_ROWS = [[i, f"v{i}", [f"y{i}", i], [f"l{i}"]] for i in (3, 4)]


def frame(rows, kind):
    shown = [{"id": i, "x": x, "s": {"y": y, "z": z}, "l": held} for i, x, (y, z), held in rows]
    return pa.Table.from_pylist(shown, kind.as_arrow())


@pytest.mark.parametrize(
    "version", ["2", pytest.param("1", marks=pytest.mark.full("the other format version"))]
)
def test_others_read_a_table_that_we_replaced_and_its_past(library, catalog, version):
    name = f"replaced{version}"
    namespace, own = library.own(name)
    properties = {"format-version": version}
    table = catalog.create_table((namespace, own), OLD, partition_spec=BY_X, properties=properties)
    table.append(frame(OLD_ROWS, OLD))
    first = table.current_snapshot().snapshot_id
    with table.manage_snapshots() as manage:
        manage.create_tag(first, "old")
    with catalog.replace_table_transaction((namespace, own), NEW, partition_spec=BY_X) as new:
        new.append(frame(NEW_ROWS, NEW))
    assert library.agree(name) == ordered(NEW_ROWS)
    assert library.agree(name, "x = 'v3'", "id, s, l") == ordered(
        [row[:1] + row[2:] for row in NEW_ROWS[:1]]
    )
    assert library.java(name, snapshot=first) == ordered(OLD_ROWS)
    assert ordered(arrow_rows(library.load(name).scan(snapshot_id=first).to_arrow())) == ordered(
        OLD_ROWS
    )
    peer = library.load_peer(name).scan(snapshot_id=first).to_arrow()
    assert ordered(arrow_rows(peer)) == ordered(OLD_ROWS)
    if version == "1":
        # Iceberg Java does not write by a spec with a void field of a column that was dropped
        properties = {"format-version": "2"}
        with catalog.replace_table_transaction(
            (namespace, own), NEW, partition_spec=BY_X, properties=properties
        ) as new:
            new.append(frame(NEW_ROWS, NEW))
    library.iceberg.append(library.name(name), [[5, "v5", ["y5", 5], []]])
    assert [row[0] for row in library.agree(name)] == [3, 4, 5]


def test_what_iceberg_java_replaced_is_read_with_the_columns_of_each_state(library):
    name = library.create("theirs", OLD, [("identity", "x", "x")])
    library.iceberg.append(name, OLD_ROWS)
    table = library.load("theirs")
    first = table.current_snapshot().snapshot_id
    with table.manage_snapshots() as manage:
        manage.create_branch(first, "b")
    library.iceberg.replace(name, NEW, NEW_ROWS, [("identity", "x", "x")])
    table.refresh()
    # whatever the types: what is known of it is not to be changed by chance
    assert table.schema().find_field("x").field_id == 2
    assert library.agree("theirs") == ordered(NEW_ROWS)
    assert [row[0] for row in library.agree("theirs", "x = 'v3'")] == [3]
    for scan in (table.scan(snapshot_id=first), table.scan().use_ref("b")):
        assert ordered(arrow_rows(scan.to_arrow())) == ordered(OLD_ROWS)
        assert scan.filter("x > 15").select("id").to_arrow().column("id").to_pylist() == [2]
    assert library.java("theirs", snapshot=first) == ordered(OLD_ROWS)
    with pytest.raises(ValidationError, match="'x' is string"):
        table.append(frame(NEW_ROWS, NEW), branch="b")
    # Iceberg Java appends to the branch all the same: files of both types are alive there
    library.iceberg.append(name, NEW_ROWS, branch="b")
    table.refresh()
    scan = table.scan().use_ref("b")
    with pytest.raises(ValidationError, match=f"'x' is string, which files of snapshot {first}"):
        scan.to_arrow()
    assert sorted(scan.select("id").to_arrow().column("id").to_pylist()) == [1, 2, 3, 4]
    assert table.inspect.all_files().num_rows == 6
