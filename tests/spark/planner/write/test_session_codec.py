"""The session's codec in files that the planner writes itself: it precedes the table's."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from icecomb.format.errors import ConfigurationError
from icecomb.format.operation.row_delta import RowDelta
from icecomb.spark.planner.options import Options, write_properties
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter
from tests.spark.planner.protocol import NAMESPACE, Planner

SETTING = "spark.sql.iceberg.compression-"
SNAPPY = {f"{SETTING}codec": "snappy"}
SNAPPY_OF = {"parquet": "SNAPPY", "orc": "SNAPPY", "avro": "snappy"}


@pytest.fixture
def local(folders):
    return Planner.in_folders(folders)


def made(folders, file_format, mode="merge-on-read", *appends):
    properties = {"write.format.default": file_format, "write.delete.mode": mode}
    for which in ("write", "write.delete"):
        properties[f"{which}.{file_format}.compression-codec"] = "zstd"
    table = folders.create_table(
        (*NAMESPACE, "t"), pa.schema([("id", pa.int64())]), properties=properties
    )
    for ids in appends or ([1, 2, 3],):
        table.append(pa.table({"id": ids}))
    return table


def delete(local, *ids, settings=SNAPPY):
    for key in ids:
        local.ask(
            "delete_where",
            reference=local.load("t")["reference"],
            filters=[{"op": "eq", "column": ["id"], "type": "long", "value": key}],
            settings=settings,
        )


def called(local, name, settings=SNAPPY, **options):
    arguments = {"table": ".".join((*NAMESPACE, "t"))} | ({"options": options} if options else {})
    return local.ask(
        "call_procedure",
        catalog=local.catalog,
        procedure={"namespace": ["system"], "name": name},
        arguments=[{"name": key, "value": value} for key, value in arguments.items()],
        current={"catalog": "lake", "namespace": NAMESPACE},
        case_sensitive=False,
        settings=settings,
    )["rows"]


def codecs(table, content):
    """The codecs of the table's files of a content, as they say themselves."""
    found = table.refresh().inspect.files(row_filter=f"content = {content}").to_pylist()
    return [_codec(file["file_format"], local_path(file["file_path"])) for file in found]


def local_path(location):
    return Path(location.removeprefix("file:"))


def _codec(file_format, path):
    if file_format == "PARQUET":
        return pq.read_metadata(path).row_group(0).column(0).compression
    if file_format == "ORC":
        return orc.ORCFile(path).compression
    with path.open("rb") as source:
        return fastavro.block_reader(source).metadata["avro.codec"]


def rows(table):
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("file_format", SNAPPY_OF)
@pytest.mark.parametrize(("mode", "content"), [("copy-on-write", 0), ("merge-on-read", 1)])
def test_a_delete_without_a_job_writes_by_the_codec_of_the_session(
    folders, local, file_format, mode, content
):
    table = made(folders, file_format, mode)
    delete(local, 2)
    assert codecs(table, content) == [SNAPPY_OF[file_format]]
    assert rows(table) == [1, 3]
    assert table.properties[f"write.{file_format}.compression-codec"] == "zstd"


@pytest.mark.parametrize("file_format", SNAPPY_OF)
def test_rewritten_files_have_the_codec_of_the_session(folders, local, file_format):
    table = made(folders, file_format, "merge-on-read", [1, 2, 3, 4], [5, 6])
    delete(local, 2, settings={})
    assert SNAPPY_OF[file_format] not in codecs(table, 1)
    every = {"rewrite-all": "true"}
    [[old, new, *_]] = called(local, "rewrite_position_delete_files", **every)
    assert (old, new, codecs(table, 1)) == (1, 1, [SNAPPY_OF[file_format]])
    writer = EqualityDeleteWriter(table.io, table.metadata, "equal", ["id"])
    writer.write(pa.record_batch({"id": [6]}))
    change = RowDelta(table.io)
    for file in writer.close():
        change.add_deletes(file)
    table.commit(change)
    assert called(local, "convert_equality_deletes")[0][-1] == 1
    assert codecs(table, 1) == [SNAPPY_OF[file_format]] * 2
    assert SNAPPY_OF[file_format] not in codecs(table, 0)
    called(local, "rewrite_data_files", **every)
    assert codecs(table, 0) == [SNAPPY_OF[file_format]]
    assert rows(table) == [1, 3, 4, 5]


def test_levels_and_strategies_precede_those_of_both_kinds_of_files(folders):
    table = made(folders, "avro")
    said = Options({}, {f"{SETTING}level": "9", f"{SETTING}strategy": "compression"})
    with table.transaction() as change:
        change.set_properties({"write.delete.format.default": "orc"})
    assert write_properties(table.metadata, said) == {
        "write.avro.compression-level": "9",
        "write.delete.avro.compression-level": "9",
        "write.orc.compression-strategy": "compression",
        "write.delete.orc.compression-strategy": "compression",
    }
    assert write_properties(table.metadata, Options({})) == {}


def test_a_codec_that_the_format_lacks_is_refused_by_the_name_of_the_setting(folders, local):
    table = made(folders, "orc")
    settings = {f"{SETTING}codec": "gzip"}
    for refused in (
        lambda: delete(local, 2, settings=settings),
        lambda: called(local, "rewrite_data_files", settings=settings),
    ):
        with pytest.raises(ConfigurationError, match=rf"{SETTING}codec cannot be 'gzip'"):
            refused()
    assert rows(table) == [1, 2, 3]
    called(local, "expire_snapshots", settings=settings)
    with table.transaction() as change:  # vectors are written in no format of data files
        change.set_properties({"write.format.default": "parquet", "format-version": "3"})
        change.set_properties({"write.delete.format.default": "orc"})
    delete(local, 2, settings=settings)
    assert rows(table) == [1, 3]
