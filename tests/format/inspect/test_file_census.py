"""The census of a snapshot against PyIceberg's metadata tables and the Avro files themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

from icecomb.catalog import Table, load_catalog
from icecomb.format.errors import NoSuchFileError
from icecomb.format.inspect.file_census import NEVER, CensusLimits, FileCensus, take_census
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.storage.file_io import FileIO

LIMITS = CensusLimits(small=800, sort_order_id=1, by_snapshot=True)
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("n", pa.int32())])


def rows(*days: str | None) -> pa.Table:
    count = len(days)
    return pa.table({"id": range(count), "day": days, "n": range(count)}, schema=SCHEMA)


@pytest.fixture(scope="module", params=[1, 2])
def table(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Table:
    """Three specs, one of a field whose type was widened, files with and without an order."""
    folder = tmp_path_factory.mktemp("lake")
    lake = load_catalog("lake", type="hadoop", warehouse=str(folder))
    lake.create_namespace("db")
    version = {"format-version": str(request.param), "commit.manifest-merge.enabled": "false"}
    made = lake.create_table("db.t", SCHEMA, properties=version)
    made.append(rows("mon", "tue", None))
    with made.update_spec() as spec:
        spec.add_identity("day")
    made.append(rows("mon", "tue", None, "mon"))
    made.append(rows("tue"))
    with made.update_spec() as spec:
        spec.add_identity("n")
    made.append(rows("mon", None))
    with made.update_schema() as schema:
        schema.update_column("n", "long")
    with made.update_sort_order() as order:
        order.asc("id")
    made.append(rows(*["wed"] * 300).cast(pa.schema([*list(SCHEMA)[:2], ("n", pa.int64())])))
    made.delete("day = 'tue'")
    if request.param == 2:
        _delete_some(made)
    return made


def _delete_some(made: Table) -> None:
    """An equality delete file and one of positions, written by hand."""
    path = f"{made.location()}/data/equal.parquet"
    field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.table([[0, 2]], schema=pa.schema([field])), path.removeprefix("file://"))
    wide = made.specs()[2]
    by_value = DataFile(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=path,
        partition=("mon", 0),
        record_count=2,
        file_size_in_bytes=made.io.size(path),
        equality_ids=(1,),
        spec_id=wide.spec_id,
    )
    by_position = DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=path.replace("equal", "places"),
        record_count=7,
        file_size_in_bytes=123,
    )
    made.commit(RowDelta(made.io).add_deletes(by_value).add_deletes(by_position))


def entries(table: Table) -> list[dict[str, Any]]:
    """The live entries of the snapshot, as fastavro reads them, each with spec and number."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    found = []
    with Path(snapshot.manifest_list.removeprefix("file://")).open("rb") as file:
        manifests = list(fastavro.reader(file))
    for manifest in manifests:
        with Path(manifest["manifest_path"].removeprefix("file://")).open("rb") as file:
            for entry in fastavro.reader(file):
                if entry["status"] == 2:
                    continue
                number = entry.get("sequence_number")
                if number is None:
                    number = manifest.get("sequence_number", 0)
                content = entry["data_file"].get("content", 0)
                added = entry["snapshot_id"] or manifest["added_snapshot_id"]
                found.append(
                    {
                        **entry["data_file"],
                        "content": content,
                        "spec_id": manifest["partition_spec_id"],
                        "number": number,
                        "added": added,
                    }
                )
    return found


def census(table: Table) -> FileCensus:
    snapshot = table.current_snapshot()
    manifests = () if snapshot is None else read_manifests(table.io, snapshot)
    return take_census(table.metadata, table.io, manifests, LIMITS)


def expected(entry: dict[str, Any]) -> dict[str, int]:
    size, count, content = entry["file_size_in_bytes"], entry["record_count"], entry["content"]
    data = content == 0
    unsorted = data and entry["sort_order_id"] != 1
    return {
        "files": int(data),
        "bytes": size if data else 0,
        "rows": count if data else 0,
        "small_files": int(data and size < 800),
        "small_bytes": size if data and size < 800 else 0,
        "unsorted_files": int(unsorted),
        "unsorted_bytes": size if unsorted else 0,
        "position_delete_files": int(content == 1),
        "position_deletes": count if content == 1 else 0,
        "equality_delete_files": int(content == 2),
        "equality_deletes": count if content == 2 else 0,
        "delete_bytes": 0 if data else size,
    }


def test_each_partition_has_the_counts_of_its_entries(table: Table) -> None:
    wanted: dict[Any, Counter[str]] = defaultdict(Counter)
    oldest: dict[Any, int] = {}
    for entry in entries(table):
        key = (entry["spec_id"], *entry["partition"].values())
        wanted[key].update(expected(entry))
        if entry["content"] == 0:
            oldest[key] = min(entry["number"], oldest.get(key, entry["number"]))
    found = {}
    for spec_id, partitions in census(table).partitions.items():
        values = [array.to_pylist() for array in partitions.values]
        for at, key in enumerate(zip(*values, strict=True) if values else [()]):
            counts = {name: int(partitions[name][at]) for name in partitions.counts}
            found[(spec_id, *key)] = (counts, int(partitions.oldest[at]))
    assert found.keys() == wanted.keys()
    assert len(found) >= 6
    for key, (counts, first) in found.items():
        assert counts == {name: wanted[key][name] for name in partitions.counts}, key
        assert first == oldest.get(key, NEVER)


def test_totals_are_those_of_pyiceberg_s_files(table: Table) -> None:
    files = StaticTable.from_metadata(table.metadata_location).inspect.files().to_pylist()
    found = census(table)
    for content, (count, records) in {
        0: ("files", "rows"),
        1: ("position_delete_files", "position_deletes"),
        2: ("equality_delete_files", "equality_deletes"),
    }.items():
        chosen = [file for file in files if file["content"] == content]
        assert found.total(count) == len(chosen)
        assert found.total(records) == sum(file["record_count"] for file in chosen)
    data = [file["file_size_in_bytes"] for file in files if file["content"] == 0]
    assert found.total("bytes") == sum(data)


def test_files_are_counted_by_the_snapshot_that_added_them(table: Table) -> None:
    wanted = Counter(entry["added"] for entry in entries(table) if entry["content"] == 0)
    paths = {entry["file_path"]: entry for entry in entries(table)}
    sources = census(table).sources
    assert {one.snapshot_id: one.files for one in sources} == wanted
    for one in sources:
        entry = paths[one.path]
        assert (entry["added"], entry["file_size_in_bytes"]) == (one.snapshot_id, one.size)


def test_a_table_without_snapshots_has_nothing(tmp_path: Path) -> None:
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    empty = lake.create_table("db.t", SCHEMA)
    found = census(empty)
    assert (found.manifests, dict(found.partitions), found.total("files")) == ((), {}, 0)


def test_each_manifest_is_read_once_and_kept_nowhere(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    real = FileIO.read

    def noted(self: FileIO, location: str) -> bytes:
        read.append(location)
        return real(self, location)

    monkeypatch.setattr(FileIO, "read", noted)
    for _ in range(2):
        read.clear()
        found = census(table)
        paths = [m.manifest_path for m in found.manifests]
        snapshot = table.current_snapshot()
        assert snapshot is not None
        assert Counter(read) == Counter([*paths, snapshot.manifest_list])


def test_a_manifest_that_is_lost_is_an_error(table: Table) -> None:
    path = Path(census(table).manifests[0].manifest_path.removeprefix("file://"))
    elsewhere = path.rename(path.with_suffix(".lost"))
    with pytest.raises(NoSuchFileError):
        census(table)
    elsewhere.rename(path)
