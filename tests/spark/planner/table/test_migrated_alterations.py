"""ALTER TABLE of tables that were Hive tables goes on as before, or is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog.hadoop.catalog import HadoopCatalog
from icecomb.format.errors import UnsupportedError
from icecomb.format.property.table_property import PARTITION_OVERWRITE_MODE
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import IdentityTransform
from icecomb.spark.planner.table.tables import alter_table

COLUMNS = pa.schema([("id", pa.int32()), ("a", pa.string()), ("b", pa.string())])
MIGRATED = {PARTITION_OVERWRITE_MODE.key: "dynamic", "migrated": "true", "gc.enabled": "false"}


@pytest.fixture
def made(tmp_path):
    """Makes a table that is partitioned by columns with these numbers."""
    catalog = HadoopCatalog("lake", {"warehouse": str(tmp_path)})
    catalog.create_namespace("db")

    def make(*keys, **properties):
        fields = (
            PartitionField(key, 1000 + key, IdentityTransform(), COLUMNS.names[key - 1])
            for key in keys
        )
        spec = PartitionSpec(0, tuple(fields))
        return catalog.create_table(
            "db.t", COLUMNS, partition_spec=spec, properties=MIGRATED | properties
        )

    return make


def add(*path, position=None):
    return {
        "action": "add_column",
        "path": path,
        "type": "string",
        "nullable": True,
        "comment": None,
        "default": "",
        "position": position,
    }


@pytest.mark.parametrize(
    ("keys", "change", "columns"),
    [
        ((2, 3), {}, ["id", "n", "m", "a", "b"]),
        ((3,), {}, ["id", "a", "n", "m", "b"]),
        ((), {}, ["id", "a", "b", "n", "m"]),
        ((1,), {}, ["id", "a", "b", "n", "m"]),
        ((3,), {"position": {"after": "id"}}, ["id", "m", "n", "a", "b"]),
    ],
)
def test_new_columns_stand_before_the_partition_columns_as_in_hive(made, keys, change, columns):
    table = made(*keys)
    alter_table(table, [add("n", **change), add("m", **change)])
    assert table.schema().column_names == columns


def test_where_the_table_does_not_go_on_as_a_hive_table_new_columns_are_the_last(made):
    table = made(3)
    table.update_properties().remove(PARTITION_OVERWRITE_MODE.key).commit()
    alter_table(table, [add("n")])
    assert table.schema().column_names == ["id", "a", "b", "n"]


def test_another_location_is_refused_as_it_would_show_no_other_rows(made, tmp_path):
    table = made(3)
    move = {"action": "set_property", "key": "location", "value": str(tmp_path / "other")}
    before = table.metadata_location
    with pytest.raises(UnsupportedError, match="another folder") as refused:
        alter_table(table, [move])
    assert "finalize" in refused.value.hint
    assert table.refresh().metadata_location == before
