"""Properties are checked when they are set: at creation, replacement and update."""

import re
from dataclasses import replace

import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.source.source import iceberg_properties
from icecomb.format.errors import ConfigurationError, ValidationError
from icecomb.format.evolution.property_update import UpdateProperties
from icecomb.format.property.table_property import (
    ENTRY_PROPERTIES,
    GC_ENABLED,
    OBJECT_STORE,
    ORC_BATCH_ROWS,
    PARTITION_OVERWRITE_MODE,
    RESERVED_PROPERTIES,
    TABLE_PROPERTIES,
)
from icecomb.format.spec.change.update import (
    RemovePropertiesUpdate,
    SetPropertiesUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField

SCHEMA = Schema((NestedField(1, "id", LongType()),))
REFUSED = [
    ("commit.retry.num-retries", "-1", "a whole number, 0 or more"),
    ("commit.retry.min-wait-ms", "soon", "a whole number, 0 or more"),
    ("commit.retry.max-wait-ms", "1.5", "a whole number, 0 or more"),
    ("commit.retry.total-timeout-ms", "", "a whole number, 0 or more"),
    ("commit.manifest.target-size-bytes", "0", "a whole number, 1 or more"),
    ("commit.manifest.target-size-bytes", "8 MB", "a whole number, 1 or more"),
    ("write.manifest.compression-level", "x", "a whole number"),
    ("write.metadata.compression-codec", "zstd", "none, gzip or uncompressed"),
    ("write.format.default", "csv", "parquet, avro or orc"),
    ("write.delete.mode", "fast", "copy-on-write or merge-on-read"),
    ("write.merge.isolation-level", "none", "serializable or snapshot"),
    ("write.distribution-mode", "random", "none, hash or range"),
    ("gc.enabled", "yes", "true or false"),
    ("write.metadata.metrics.default", "truncate(0)", "none, counts, full or truncate(n)"),
    ("write.metadata.metrics.column.a.b", "all", "none, counts, full or truncate(n)"),
    ("history.expire.min-snapshots-to-keep", "0", "a whole number, 1 or more"),
    ("schema.name-mapping.default", "[{", "the JSON of a name mapping"),
]
ACCEPTED = {
    "commit.retry.num-retries": "0",
    "commit.retry.total-timeout-ms": "1800000",
    "write.metadata.compression-codec": "GZIP",
    "write.metadata.metrics.column.id": "Truncate(16)",
    "write.delete.mode": "merge-on-read",
    "gc.enabled": "TRUE",
    "write.manifest.compression-level": "-1",
    "schema.name-mapping.default": '[{"names": ["id"], "field-id": 1}]',
    "somebody.else": "anything",
}


def created(properties):
    return new_table_metadata(
        SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, "/t", properties
    )


@pytest.mark.parametrize(("key", "value", "accepted"), REFUSED)
def test_a_value_that_means_nothing_is_refused_with_what_would(key, value, accepted):
    for attempt in (
        lambda: created({key: value}),
        lambda: update_table_metadata(created({}), (SetPropertiesUpdate({key: value}),)),
    ):
        with pytest.raises(ValidationError) as caught:
            attempt()
        assert caught.value.message == f"Property {key} cannot be {value!r}"
        assert caught.value.hint == f"It may be {accepted}."


@pytest.mark.parametrize("known", TABLE_PROPERTIES.values(), ids=lambda known: known.key)
def test_a_wrong_value_is_refused_in_one_wording_wherever_it_is_read(known):
    wrong = "\N{ARABIC-INDIC DIGIT THREE} ,"
    key = f"{known.key}id" if known.key.endswith(".") else known.key
    if known.accepted in ("a folder", "names separated by commas"):
        assert known.of({key: wrong}) == wrong.strip()
        return
    read = known.of_each if known.key.endswith(".") else known.of
    with pytest.raises(ConfigurationError) as caught:
        read({key: wrong})
    assert str(caught.value) == (
        f"Property {key} cannot be {wrong!r}\n  hint: It may be {known.accepted}."
    )


def test_rows_for_which_orc_takes_memory_are_bounded():
    assert ORC_BATCH_ROWS.of({ORC_BATCH_ROWS.key: "2147483647"}) == 1 << 14
    assert ORC_BATCH_ROWS.of({ORC_BATCH_ROWS.key: "100"}) == 100


def test_blanks_around_a_value_mean_nothing_where_it_is_checked_nor_where_it_is_read():
    properties = created(
        {"gc.enabled": " TRUE ", "write.object-storage.enabled": " true "}
    ).properties
    assert (GC_ENABLED.of(properties), OBJECT_STORE.of(properties)) == (True, True)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("commit.retry.num-retrys", "commit.retry.num-retries"),
        ("write.metadata.compresion-codec", "write.metadata.compression-codec"),
        ("read.split.targetsize", "read.split.target-size"),
        ("write.delete.modes", "write.delete.mode"),
    ],
)
def test_a_name_that_is_nearly_a_known_one_is_refused_with_the_one_that_was_meant(written, meant):
    with pytest.raises(ConfigurationError, match=re.escape(written)) as caught:
        created({written: "1"})
    assert caught.value.hint == f"Did you mean {meant}?"


@pytest.mark.parametrize(
    "key",
    [
        "write.upsert.enabled",
        "write.delete.parquet.compression-codec",
        "write.delete.orc.stripe-size-bytes",
        "write.delete.orc.block-size-bytes",
        "write.manifest-lists.enabled",
        "read.orc.vectorization.enabled",
        "write.metadata.metrics.column.idd",
        "owner",
        "writer",
    ],
)
def test_names_of_other_programs_are_kept(key):
    assert created({key: "none"}).properties[key] == "none"


def test_values_that_mean_something_and_unknown_properties_are_kept():
    assert ACCEPTED.items() <= created(ACCEPTED).properties.items()
    updated = update_table_metadata(created({}), (SetPropertiesUpdate(ACCEPTED),))
    assert ACCEPTED.items() <= updated.properties.items()


@pytest.mark.parametrize("key", sorted(RESERVED_PROPERTIES))
def test_properties_that_describe_the_table_cannot_be_set_or_removed(key):
    for update in (SetPropertiesUpdate({key: "2"}), RemovePropertiesUpdate((key,))):
        with pytest.raises(ValidationError, match=f"Cannot set reserved properties: {key}"):
            update_table_metadata(created({}), (update,))
    if key == "format-version":
        assert key not in created({key: "1"}).properties
    else:
        with pytest.raises(ValidationError, match=f"Cannot set reserved properties: {key}"):
            created({key: "2"})


@pytest.mark.parametrize("key", sorted(ENTRY_PROPERTIES))
def test_names_by_which_a_metastore_points_at_a_table_are_removed_but_never_set(key):
    for attempt in (
        lambda: created({key: "x"}),
        lambda: update_table_metadata(created({}), (SetPropertiesUpdate({key: "x"}),)),
        lambda: UpdateProperties().set(key, "x"),
    ):
        with pytest.raises(ValidationError, match=f"Cannot set reserved properties: {key}"):
            attempt()
    other = replace(created({}), properties={key: "by another writer", "mine": "x"})
    mended = update_table_metadata(other, (RemovePropertiesUpdate((key,)),))
    assert mended.properties == {"mine": "x"}


@pytest.mark.parametrize("text", ["FALSE", "false", "", "no"])
def test_a_table_whose_files_hive_would_delete_is_not_made(text):
    for attempt in (
        lambda: created({"EXTERNAL": text}),
        lambda: update_table_metadata(created({}), (SetPropertiesUpdate({"EXTERNAL": text}),)),
    ):
        with pytest.raises(ValidationError, match=r"Property EXTERNAL cannot be") as caught:
            attempt()
        assert "Hive" in (caught.value.hint or "")
    assert created({"EXTERNAL": "TRUE"}).properties["EXTERNAL"] == "TRUE"


def test_a_table_is_neither_made_replaced_nor_changed_with_a_wrong_property(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    wrong = {"commit.retry.num-retries": "many"}
    with pytest.raises(ValidationError, match=r"commit\.retry\.num-retries cannot be 'many'"):
        catalog.create_table("db.t", SCHEMA, properties=wrong)
    assert not catalog.table_exists("db.t")
    table = catalog.create_table("db.t", SCHEMA)
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValidationError, match=r"commit\.retry\.num-retries cannot be 'many'"):
        catalog.replace_table("db.t", SCHEMA, properties=wrong)
    with (
        pytest.raises(ValidationError, match=r"commit\.retry\.num-retries cannot be 'many'"),
        table.transaction() as transaction,
    ):
        transaction.set_properties(wrong)
    assert sorted(tmp_path.rglob("*")) == files


def test_a_hive_table_that_was_an_iceberg_table_brings_no_reserved_property():
    reserved = RESERVED_PROPERTIES | ENTRY_PROPERTIES
    parameters = {**dict.fromkeys(reserved, "1"), "numRows": "3", "mine": "x"}
    table = HiveTable("db", "t", parameters=parameters)
    mode = PARTITION_OVERWRITE_MODE.key
    assert iceberg_properties(table) == {"mine": "x", mode: "dynamic"}
    parameters["spark.sql.sources.provider"] = "PARQUET"
    assert iceberg_properties(table) == {"mine": "x", mode: "static"}
    parameters[mode] = "dynamic"
    assert iceberg_properties(table)[mode] == "dynamic"


def test_a_table_that_has_a_wrong_property_already_is_read_and_mended(tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties={"gc.enabled": "true"})
    file = tmp_path / "db" / "t" / "metadata" / "v1.metadata.json"
    file.write_text(file.read_text().replace('"gc.enabled":"true"', '"gc.enabled":"perhaps"'))
    table = catalog.load_table("db.t")
    assert table.properties["gc.enabled"] == "perhaps"
    with table.transaction() as transaction:
        transaction.set_properties({"gc.enabled": "false"})
    assert catalog.load_table("db.t").properties["gc.enabled"] == "false"
