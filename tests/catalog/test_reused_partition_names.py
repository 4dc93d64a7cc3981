"""A partition field's name that was used again for another transform."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["ab", "cd", "ab"]})


@pytest.fixture(params=["1", "2"])
def table(request, tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    properties = {"format-version": request.param}
    table = catalog.create_table("db.t", ROWS.schema, properties=properties)
    table.update_spec().add_field("s", "truncate[1]", "p").commit()
    table.append(ROWS)
    table.update_spec().remove_field("p").commit()
    table.update_spec().add_field("id", "bucket[4]", "p").commit()
    table.append(ROWS)
    return table


def test_metadata_tables_show_both_the_newer_one_under_its_name(table):
    old, new = (
        next(field.field_id for field in spec.fields if field.source_id == source)
        for source, spec in ((2, table.specs()[1]), (1, table.spec()))
    )
    files = table.inspect.files().to_pylist()
    assert [set(file["partition"]) for file in files] == [{"p", f"p_{old}"}] * len(files)
    assert {file["partition"][f"p_{old}"] for file in files} == {"a", "c", None}
    assert {file["partition"]["p"] for file in files} > {None}
    assert new != old
    for name in ("partitions", "entries", "all_files", "data_files"):
        assert getattr(table.inspect, name)().num_rows


def test_rows_are_found_by_both(table):
    assert sorted(table.scan("s = 'ab'").to_arrow()["id"].to_pylist()) == [1, 1, 3, 3]
    assert table.scan("id = 2").to_arrow().num_rows == 2
