from __future__ import annotations

import pytest

from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.evolution.property_update import UpdateLocation, UpdateProperties
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField


def table(**properties):
    schema = Schema((NestedField(1, "id", LongType()),))
    return new_table_metadata(
        schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, "/t", properties
    )


def commit(base, update):
    return update_table_metadata(base, update.apply(base).updates)


def test_properties_are_set_and_removed_and_others_stay():
    base = table(a="1", b="2", c="3")
    metadata = commit(base, UpdateProperties().set("a", "9").remove("b").remove("absent"))
    kept = {k: v for k, v in metadata.properties.items() if len(k) == 1}
    assert kept == {"a": "9", "c": "3"}


def test_setting_the_format_version_upgrades_the_table():
    metadata = commit(
        table(**{"format-version": "1"}), UpdateProperties().set("format-version", "2")
    )
    assert metadata.format_version == 2
    assert "format-version" not in metadata.properties
    assert commit(metadata, UpdateProperties().set("format-version", "3")).format_version == 3
    with pytest.raises(UnsupportedError):
        commit(metadata, UpdateProperties().set("format-version", "4"))
    with pytest.raises(ValidationError, match="go back"):
        commit(metadata, UpdateProperties().set("format-version", "1"))


def test_contradictions_and_values_that_are_no_text_are_refused():
    with pytest.raises(ValidationError, match="at once"):
        UpdateProperties().set("a", "1").remove("a")
    with pytest.raises(ValidationError, match="at once"):
        UpdateProperties().remove("a").set("a", "1")
    with pytest.raises(ValidationError, match="must be text"):
        UpdateProperties().set("a", None)
    assert commit(table(), UpdateProperties().set("a", 1)).properties["a"] == "1"
    with pytest.raises(ValidationError, match="not a number"):
        UpdateProperties().set("format-version", "two")
    with pytest.raises(ValidationError, match="reserved"):
        commit(table(), UpdateProperties().set("uuid", "x"))


def test_the_location_of_new_files_changes():
    assert commit(table(), UpdateLocation("/elsewhere")).location == "/elsewhere"
    with pytest.raises(ValidationError, match="needs a location"):
        UpdateLocation("")
    for location in ("s3a://b/wh//t", "s3://b/wh/../t", "abfs://c@a.dfs.core.windows.net//t"):
        with pytest.raises(ValidationError, match="engines that write through Hadoop"):
            UpdateLocation(location)
    assert commit(table(), UpdateLocation("hdfs://nn//t")).location == "hdfs://nn//t"
