from __future__ import annotations

import base64
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hmsclient.genthrift.hive_metastore import ttypes

from icecomb.catalog import migrate
from icecomb.catalog.hive.thrift.entity import FieldSchema, HiveTable
from icecomb.catalog.hive.thrift.thrift_codec import decode, encode, table_from_wire
from icecomb.catalog.migrate.applying.existing_files import files_of_hive_table
from icecomb.catalog.migrate.applying.migration import MigrationBlockedError
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.migrate.journal.journal import COPIES, FOLDER
from icecomb.catalog.migrate.planning.obstacle import table_findings
from icecomb.catalog.migrate.planning.survey import plan_source
from icecomb.catalog.report.finding import Finding
from icecomb.catalog.report.progress import SILENT
from icecomb.format.errors import ValidationError
from icecomb.format.spec.schema import Schema
from icecomb.format.storage.file_io import FileIO
from tests.catalog.migrate.conftest import AVRO, ORC, PARQUET
from tests.catalog.numbered_rows import numbers
from tests.rings import sampled


def codes(plan: Any) -> set[str]:
    return {finding.code for finding in plan.blockers}


@pytest.mark.parametrize(
    ("provider", "found"),
    sampled([("ORC", set()), ("parquet", set()), ("csv", {"format"}), ("hive", set())], keep=2),
)
def test_by_which_source_spark_reads_a_table_says_whether_its_files_are_taken_over(
    make_hive_table: Any, provider: str, found: set[str]
) -> None:
    table = make_hive_table(
        {"id": "bigint"}, rows=numbers(1), parameters={"spark.sql.sources.provider": provider}
    )
    assert codes(migrate.plan(table.catalog, table.name)) == found


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"input_format": "org.apache.hudi.hadoop.HoodieParquetInputFormat"}, "Hoodie"),
        ({"input_format": "com.example.SampledOrcInputFormat"}, "Sampled"),
        ({"serde": "com.example.MaskingParquetSerDe"}, "Masking"),
    ],
)
@pytest.mark.parametrize("where", ["table", "partition"])
def test_files_that_classes_of_others_choose_or_read_are_not_taken_as_they_are(
    make_hive_table: Any, where: str, changed: dict[str, str], named: str
) -> None:
    """Hudi keeps old versions of rows in the folder, in files of their own: its class passes them over."""
    other = replace(PARQUET, **changed)
    if where == "table":
        table = make_hive_table({"id": "bigint"}, rows=numbers(1), storage=other)
    else:
        table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
        (one,) = table.partitions
        storage = replace(one.storage, **changed)
        client = table.catalog.client
        client.partitions.alter(*table.name.split("."), [replace(one, storage=storage)])
    plan = migrate.plan(table.catalog, table.name)
    code = "format" if where == "table" else "partition-format"
    assert codes(plan) == {code}
    found = of(plan, code)
    assert named in found.message + "".join(found.places)
    assert where == "partition" or "every file" in found.remedy


def spark_table(make: Any, serde: dict[str, str], **named: Any) -> Any:
    parameters = {"spark.sql.sources.provider": "parquet", **named.pop("parameters", {})}
    storage = replace(PARQUET, serde_parameters=serde)
    return make({"id": "bigint"}, storage=storage, parameters=parameters, **named)


def test_partitions_that_spark_finds_in_folders_are_in_the_way(make_hive_table: Any) -> None:
    by_metastore = {"spark.sql.partitionProvider": "catalog"}
    keys = {"keys": {"k": "int"}}
    table = spark_table(make_hive_table, {}, **keys)
    (table.folder / "k=1").mkdir()
    pq.write_table(numbers(1), table.folder / "k=1" / "f.parquet")
    plan = migrate.plan(table.catalog, table.name)
    assert codes(plan) == {"spark-partitions"}
    assert "MSCK REPAIR" in of(plan, "spark-partitions").remedy
    known = spark_table(make_hive_table, {}, parameters=by_metastore, **keys)
    assert codes(migrate.plan(known.catalog, known.name)) == set()


@pytest.mark.parametrize("key", ["transactional", "TRANSACTIONAL"])
def test_hive_takes_a_table_for_transactional_whatever_the_case_of_the_key(key: str) -> None:
    """Metastores that look at it write it in small letters; AcidUtils.isTransactionalTable takes both."""
    storage = replace(ORC, location="file:/t")
    for value, found in (("True", {"transactional"}), ("false", set())):
        table = HiveTable("made", "t", storage=storage, parameters={key: value})
        assert {finding.code for finding in table_findings(table, Choices())} == found


@pytest.mark.parametrize("key", ["skip.header.line.count", "skip.footer.line.count"])
@pytest.mark.parametrize("storage", [PARQUET, ORC, AVRO], ids=["Parquet", "ORC", "Avro"])
def test_rows_that_hive_leaves_out_are_not_revived(storage: Any, key: str) -> None:
    """Hive counts lines of any format, by the table's properties, and those of its SerDe as defaults."""
    at = replace(storage, location="file:/t")
    for text, found in (
        *((text, {"skipped-rows"}) for text in ("1", "+2", "many", "", " 0", "1_0")),
        *((text, set()) for text in ("0", "-1", "+00")),
    ):
        table = HiveTable("made", "t", storage=at, parameters={key: text})
        blocked = [one for one in table_findings(table, Choices()) if one.code == "skipped-rows"]
        assert {one.code for one in blocked} == found, text
        said = replace(at, serde_parameters={key: text})
        by_serde = HiveTable("made", "t", storage=said)
        assert {one.code for one in table_findings(by_serde, Choices())} == found, text
        overridden = HiveTable("made", "t", storage=said, parameters={key: "0"})
        assert not list(table_findings(overridden, Choices()))
        for one in blocked:
            assert f"UNSET TBLPROPERTIES ('{key}')" in one.remedy
            assert "copy it in Hive: CREATE EXTERNAL TABLE" in one.remedy


@pytest.mark.parametrize("at", ["table", "parameters", "serde"])
def test_rows_that_hive_leaves_out_are_neither_migrated_nor_added(
    make_hive_table: Any, at: str
) -> None:
    said = {"skip.header.line.count": "1"}
    rows = {(k,): numbers(1, 2) for k in ("1", "2")}
    table = make_hive_table(
        {"id": "bigint"}, {"k": "int"}, rows, parameters=said if at == "table" else None
    )
    if at != "table":
        _, two = table.partitions
        other = (
            replace(two, parameters=said)
            if at == "parameters"
            else replace(two, storage=replace(two.storage, serde_parameters=said))
        )
        table.catalog.client.partitions.alter(*table.name.split("."), [other])
    plan = migrate.plan(table.catalog, table.name)
    assert codes(plan) == {"skipped-rows"}
    if at != "table":
        assert of(plan, "skipped-rows").places == ("k=2: skip.header.line.count=1",)
    with pytest.raises(MigrationBlockedError, match=r"leaves rows|left out"):
        migrate.apply(table.catalog, table.name)
    with pytest.raises(MigrationBlockedError):
        migrate.snapshot(table.catalog, table.name, "made.other")
    context = MigrationContext(table.catalog, *table.name.split("."), SILENT)
    with pytest.raises(ValidationError, match="leaves rows of each file"):
        files_of_hive_table(context, Schema(), {})


@pytest.mark.parametrize(("keys", "found"), [({"k": "int"}, {"projected-partitions"}), ({}, set())])
def test_partitions_that_readers_compute_are_in_the_way(
    make_hive_table: Any, keys: dict[str, str], found: set[str]
) -> None:
    table = make_hive_table({"id": "bigint"}, keys, parameters={"projection.enabled": "TRUE"})
    assert codes(migrate.plan(table.catalog, table.name)) == found


@pytest.mark.parametrize(
    ("serde", "found"),
    [
        ({"path": "file:/elsewhere"}, {"spark-location"}),
        ({"pathglobfilter": "x*"}, {"spark-options"}),
        ({"modifiedBefore": "2024-01-01T00:00:00"}, {"spark-options"}),
        ({"positionalFieldMatching": "false", "mergeSchema": "true"}, set()),
    ],
)
def test_files_that_spark_looks_for_elsewhere_or_chooses_are_in_the_way(
    make_hive_table: Any, serde: dict[str, str], found: set[str]
) -> None:
    table = spark_table(make_hive_table, serde, rows=numbers(1))
    assert codes(migrate.plan(table.catalog, table.name)) == found


@pytest.mark.parametrize("start", sampled(["file://", "file:", ""], keep=1))
def test_spellings_of_one_folder_are_no_difference(make_hive_table: Any, start: str) -> None:
    table = spark_table(make_hive_table, {}, rows=numbers(1))
    entry = table.entry
    serde = {"path": f"{start}{table.folder}/"}
    storage = replace(entry.storage, serde_parameters=serde)
    table.catalog.client.alter_table(*table.name.split("."), replace(entry, storage=storage))
    assert codes(migrate.plan(table.catalog, table.name)) == set()


def test_entry_columns_partitions_and_files_are_all_looked_at_whatever_was_found_before(
    make_hive_table: Any,
) -> None:
    table = make_hive_table(
        {"id": "bigint", "u": "uniontype<int,string>"},
        {"k": "int"},
        {("1",): numbers(1), ("no number",): numbers(2), ("3",): None, ("4",): numbers(4)},
        parameters={"parquet.column.index.access": "true"},
    )
    client, place = table.catalog.client, table.name.split(".")
    fourth = table.partitions[2]
    assert fourth.values == ("4",)
    other = replace(fourth.storage, input_format="org.apache.hadoop.mapred.TextInputFormat")
    client.partitions.alter(*place, [replace(fourth, storage=other)])
    bucketed = replace(table.entry.storage, num_buckets=4, bucket_columns=("id",))
    client.alter_table(*place, replace(table.entry, storage=bucketed))
    (table.folder / "p0" / "text").write_text("not parquet at all")
    (table.folder / "p1" / "deep").mkdir()
    pq.write_table(numbers(1), table.folder / "p1" / "deep" / "d.parquet")
    pq.write_table(pa.table({"id": ["text"]}), table.folder / "p1" / "b.parquet")
    before = table.state, table.files()
    plan = migrate.plan(table.catalog, table.name)
    assert codes(plan) == {
        "by-position",
        "bucketed",
        "unsupported-column",
        "partition-value",
        "partition-format",
        "missing-folder",
        "subdirectories",
        "unknown-format",
        "type-differs",
    }
    assert all(finding.remedy for finding in plan.blockers)
    assert (plan.partitions, len(plan.files)) == (3, 5)
    assert (table.state, table.files()) == before


def test_a_partition_key_without_a_type_of_icebergs_leaves_the_files_to_be_looked_at(
    make_hive_table: Any,
) -> None:
    table = make_hive_table(
        {"id": "bigint"}, {"k": "interval_day_time"}, {("1 00:00:00",): pa.table({"id": ["x"]})}
    )
    assert codes(migrate.plan(table.catalog, table.name)) == {"unsupported-column", "type-differs"}


def test_the_deltas_of_a_transactional_table_are_no_findings_of_their_own(
    make_hive_table: Any,
) -> None:
    orc = replace(ORC, num_buckets=1, bucket_columns=("id",))
    table = make_hive_table(
        {"id": "bigint"}, rows=numbers(1), parameters={"transactional": "TRUE"}, storage=orc
    )
    (table.folder / "delta_0000001_0000001_0000").mkdir()
    (table.folder / "delta_0000001_0000001_0000" / "bucket_00000").write_text("no Parquet")
    plan = migrate.plan(table.catalog, table.name)
    assert (codes(plan), len(plan.files)) == ({"transactional", "bucketed"}, 1)


def test_a_folder_that_cannot_be_read_hides_nothing_of_the_others(make_hive_table: Any) -> None:
    table = make_hive_table(
        {"id": "bigint"},
        {"k": "int"},
        {("1",): None, ("2",): pa.table({"id": ["x"]}), ("3",): numbers(1)},
    )
    (table.folder / "p0").symlink_to(table.folder / "p0")  # leads to itself
    assert codes(migrate.plan(table.catalog, table.name)) == {"unreadable-folder", "type-differs"}


def of(plan: Any, code: str) -> Finding:
    [found] = [finding for finding in plan.findings if finding.code == code]
    return found


@pytest.mark.parametrize(
    "wrong",
    [
        {"write.target-file-size-bytes": "128MB"},
        {"write.format.default": "textfile"},
        {"write.distribution-mode": "bogus"},
        {"write.target-file-size-byte": "1"},
        {"encryption.key-id": "k"},
    ],
)
def test_parameters_that_no_iceberg_table_can_have_block(
    tmp_path: Path, wrong: dict[str, str]
) -> None:
    storage = replace(PARQUET, columns=(FieldSchema("id", "bigint"),), location=tmp_path.as_uri())
    table = HiveTable("made", "t", storage=storage, parameters={"team": "x", **wrong})
    found = plan_source(FileIO(), table, [], Choices(), SILENT)
    (blocked,) = found.blockers
    assert (blocked.code, blocked.count) == ("property", 1)
    (key,) = wrong
    assert blocked.places[0].startswith(key)
    if key == "write.format.default":
        given = plan_source(FileIO(), table, [], Choices(), SILENT, properties={key: "orc"})
        assert not given.blockers


def alter_wire(table: Any, change: Any) -> None:
    """Change what our own values have no room for, as Hive does."""
    struct = decode(ttypes.Table, table.entry.wire)
    change(struct)
    table.catalog.client.alter_table(*table.name.split("."), table_from_wire(encode(struct)))


def test_what_is_worth_knowing_of_an_entry_is_said_and_stops_nothing(make_hive_table: Any) -> None:
    spelled = {
        "type": "struct",
        "fields": [{"name": "Id", "type": "long", "nullable": True, "metadata": {}}],
    }
    table = make_hive_table(
        {"id": "bigint"},
        parameters={
            "numRows": "7",
            "spark.sql.statistics.colStats.id.version": "2",
            "repl.last.id": "12",
            "spark.sql.sources.provider": "parquet",
            "spark.sql.sources.schema": json.dumps(spelled),
            "story": "x" * 30_000,
        },
    )

    def skew(struct: Any) -> None:
        struct.sd.skewedInfo = ttypes.SkewedInfo(["id"], [["1"]], {})

    alter_wire(table, skew)
    plan = migrate.plan(table.catalog, table.name)
    assert plan.verdict == "ready"
    severities = {
        "skewed": "warning",
        "mixed-case": "note",
        "replicated": "warning",
        "wide-entry": "warning",
        "hive-statistics": "note",
        "statistics-lost": "warning",
    }
    found = {finding.code: finding.severity for finding in plan.findings}
    assert found == {**severities, "readers": "note"}
    assert of(plan, "skewed").places == ("id",)
    assert of(plan, "mixed-case").places == ("Id",)
    assert of(plan, "wide-entry").places == ("story: 30,000 characters",)
    migrate.apply(table.catalog, table.name)
    assert migrate.revert(table.catalog, table.name, dry_run=False).done
    assert decode(ttypes.Table, table.entry.wire).sd.skewedInfo.skewedColNames == ["id"]


def test_a_plain_table_has_none_of_these_findings(make_hive_table: Any) -> None:
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): numbers(1)})
    found = {f.code for f in migrate.plan(table.catalog, table.name).findings}
    assert found == {"readers", "overwrite-mode"}


def test_what_hive_shows_otherwise_than_iceberg_will_is_said(make_hive_table: Any) -> None:
    default = "__HIVE_DEFAULT_PARTITION__"
    table = make_hive_table(
        {"id": "bigint", "f": "double"},
        {"s": "string", "k": "int"},
        {("a", "1"): numbers(1), (default, "2"): numbers(2), ("b", default): numbers(3)},
    )
    narrow = [
        replace(column, type="float") if column.name == "f" else column
        for column in table.entry.storage.columns
    ]
    orc = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
    serde = "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
    changed = [
        replace(each, storage=replace(each.storage, columns=tuple(narrow)))
        for each in table.partitions
    ]
    changed[0] = replace(
        changed[0], storage=replace(changed[0].storage, input_format=orc, serde=serde)
    )
    table.catalog.client.partitions.alter(*table.name.split("."), changed)
    plan = migrate.plan(table.catalog, table.name)
    text, number = changed[0].values
    assert of(plan, "widened-float").places == (f"s={text}/k={number}",)
    assert "1.100000023841858" in of(plan, "widened-float").message
    assert of(plan, "null-partition").places == (f"s={default}/k=2",)


def test_partitions_that_differ_from_the_table_or_lie_elsewhere_are_named(
    make_hive_table: Any, tmp_path: Path
) -> None:
    table = make_hive_table(
        {"id": "bigint", "added": "string"},
        {"k": "int"},
        {("1",): numbers(1), ("2",): numbers(2), ("3",): numbers(3)},
    )
    client, place = table.catalog.client, table.name.split(".")
    one, two, three = table.partitions
    elsewhere = tmp_path / f"{table.folder.name}-elsewhere"  # its name begins as the table's does
    shutil.move(table.folder / "p1", elsewhere)
    changed = [
        replace(one, storage=replace(one.storage, columns=one.storage.columns[:1])),
        replace(two, storage=replace(two.storage, location=f"file:{elsewhere}")),
        replace(three, parameters={"COLUMN_STATS_ACCURATE": '{"COLUMN_STATS":{"id":"true"}}'}),
    ]
    client.partitions.alter(*place, changed)
    plan = migrate.plan(table.catalog, table.name)
    assert plan.verdict == "ready"
    assert of(plan, "mixed-schemas").places == ("k=1",)
    assert of(plan, "outside-folder").places == ("k=2",)
    assert of(plan, "statistics-lost").places == ("k=3",)
    orc = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
    other = replace(changed[0], storage=replace(changed[0].storage, input_format=orc))
    client.partitions.alter(*place, [other])
    mixed = of(migrate.plan(table.catalog, table.name), "mixed-formats")
    assert mixed.places == ("2 parquet", "1 orc")
    assert "new files are Parquet unless the table's write.format.default" in (mixed.remedy or "")


def test_partitions_of_one_folder_block_whatever_their_names(
    make_hive_table: Any, tmp_path: Path
) -> None:
    pairs = {("1/b=2", "3"): numbers(1), ("1", "2/b=3"): numbers(1)}
    folders = [str(tmp_path / "one")] * 2
    table = make_hive_table(
        {"id": "bigint"}, {"a": "string", "b": "string"}, pairs, folders=folders
    )
    plan = migrate.plan(table.catalog, table.name)
    assert codes(plan) == {"shared-folder"}
    assert of(plan, "shared-folder").places == ("a=1/b=2/b=3 and a=1/b=2/b=3",)


def test_a_partition_without_a_folder_is_told_and_nothing_else_is_listed_for_it(
    make_hive_table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_hive_table(
        {"id": "bigint"}, {"k": "int"}, {("1",): numbers(1), ("2",): numbers(2)}
    )
    one, two = table.partitions
    homeless = replace(two, storage=replace(two.storage, location=None))
    listed: list[str] = []
    io, asked = table.catalog.io, type(table.catalog.io).list

    def noting(self: Any, location: str) -> Any:
        if not (location.endswith(FOLDER) or COPIES in location):  # journals of earlier migrations
            listed.append(location)
        return asked(self, location)

    monkeypatch.setattr(type(io), "list", noting)
    table.catalog.client.partitions.alter(*table.name.split("."), [homeless])
    plan = migrate.plan(table.catalog, table.name)
    assert codes(plan) == {"partition-location"}
    assert of(plan, "partition-location").places == ("k=2",)
    assert "SET LOCATION" in (of(plan, "partition-location").remedy or "")
    assert listed == [one.storage.location]


def test_a_partition_whose_columns_hive_finds_by_position_blocks(make_hive_table: Any) -> None:
    table = make_hive_table(
        {"id": "bigint"}, {"k": "int"}, {("1",): numbers(1), ("2",): numbers(2)}
    )
    said = {"parquet.column.index.access": "true"}
    one, two = table.partitions
    changed = [
        replace(one, parameters=said),
        replace(two, storage=replace(two.storage, serde_parameters=said)),
    ]
    table.catalog.client.partitions.alter(*table.name.split("."), changed)
    plan = migrate.plan(table.catalog, table.name)
    assert codes(plan) == {"by-position"}
    assert of(plan, "by-position").places == ("k=1", "k=2")


def test_columns_of_char_are_told_to_compare_otherwise_afterwards(make_hive_table: Any) -> None:
    columns = {"c": "char(5)", "l": "array<struct<x:char(2)>>", "v": "varchar(5)", "s": "string"}
    table = make_hive_table(columns, {"k": "char(3)"}, {("ab",): pa.table({"c": ["ab   "]})})
    plan = migrate.plan(table.catalog, table.name)
    assert codes(plan) == {"char-partition"}
    assert of(plan, "char-partition").places == ("k",)
    accepted = migrate.Choices(accept=("char-partition",))
    plan = migrate.plan(table.catalog, table.name, accepted)
    found = of(plan, "padded-char")
    assert (plan.verdict, found.severity, found.places) == ("ready", "warning", ("c", "l", "k"))
    assert of(plan, "char-partition").severity == "warning"
    assert "compare rtrim(c)" in (found.remedy or "")


def make_view(catalog: Any, name: str, text: str, **members: Any) -> None:
    view = HiveTable(
        "made", name, storage=PARQUET, table_type="VIRTUAL_VIEW", view_original_text=text
    )
    catalog.client.create_table(replace(view, **{"view_expanded_text": text, **members}))


def test_views_of_all_engines_that_name_the_table_are_told(make_hive_table: Any) -> None:
    table, other = (make_hive_table({"id": "bigint"}) for _ in range(2))
    name, catalog = table.name.partition(".")[2], table.catalog
    of_trino = json.dumps({"originalSql": f"SELECT id FROM {name}", "schema": "made"})
    texts = {
        "hive": f"SELECT `t`.`id` FROM `made`.`{name}` `t`",
        "spark": f"SELECT * FROM x, /* made.no */ spark_catalog.MADE.{name.upper()} AS a",
        "short": f"SELECT 1 FROM a JOIN {name} ON true",
        "trino": f"/* Presto View: {base64.b64encode(of_trino.encode()).decode()} */",
        "literal": f"SELECT 'FROM made.{name}', {name} FROM a -- {name}",
        "other": f"SELECT * FROM {other.name}",
    }
    try:
        for kind, text in texts.items():
            members = {"view_expanded_text": "/* Presto View */"} if kind == "trino" else {}
            make_view(catalog, f"{kind}_{name}", text, **members)
        found = of(migrate.plan(catalog, table.name), "views-on-it")
        named = {f"made.{kind}_{name}" for kind in ("hive", "spark", "short", "trino")}
        assert (set(found.places), found.severity) == (named, "note")
        catalog.client.drop_table("made", f"hive_{name}")
        make_view(catalog, f"hive_{name}", texts["hive"], table_type="MATERIALIZED_VIEW")
        found = of(migrate.plan(catalog, table.name), "views-on-it")
        assert (found.severity, found.places[0]) == ("warning", f"made.hive_{name}")
        assert "4 views name the table, 1 of them materialized" in found.message
    finally:
        for kind in texts:
            catalog.client.drop_table("made", f"{kind}_{name}")


def test_the_time_apply_takes_is_said_when_footers_were_read(make_hive_table: Any) -> None:
    table = make_hive_table({"id": "bigint"}, rows=numbers(1))
    for at in range(9):
        pq.write_table(numbers(at), table.folder / f"more-{at}.parquet")
    whole = migrate.plan(table.catalog, table.name)
    sampled = migrate.plan(table.catalog, table.name, sample=4)
    quick = migrate.plan(table.catalog, table.name, footers=False)
    assert (whole.rows, sampled.rows, quick.rows) == (10, None, None)
    assert sum(file.rows is not None for file in sampled.files) == 4
    assert of(sampled, "files-not-read").message == "4 of 10 footers were read"
    assert whole.seconds is not None
    assert sampled.seconds is not None
    assert quick.seconds is None


def test_a_folder_that_the_user_may_not_write_to_blocks_the_plan(
    make_hive_table: Any, monkeypatch: pytest.MonkeyPatch, icecomb: Any
) -> None:
    table = make_hive_table({"id": "bigint"}, rows=pa.table({"id": pa.array([1], pa.int64())}))
    asked = os.access

    def access(path: Any, mode: int) -> bool:
        """What the system answers to everybody but root."""
        return asked(path, mode) and not (mode & os.W_OK and str(path) == str(table.folder))

    monkeypatch.setattr(os, "access", access)
    (found,) = migrate.plan(table.catalog, table.name).blockers
    assert (found.code, "Permission denied" in found.message) == ("no-permission", True)
    assert icecomb("migrate", "apply", table.name, "--dry-run")[0] == 3
    second = ("--dry-run", "--as", f"{table.name}_second")
    assert icecomb("migrate", "apply", table.name, *second)[0] == 0
