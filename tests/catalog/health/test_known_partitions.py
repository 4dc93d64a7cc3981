"""Health with partition statistics says what it says without them, and opens fewer manifests."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog import Table, cli
from icecomb.catalog.health import check_health
from icecomb.catalog.health.known_partitions import known_partitions
from icecomb.catalog.health.table_health import TableHealth
from icecomb.format.inspect.file_census import CensusLimits
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.overwrite import DeleteFiles
from icecomb.format.storage.file_io import FileIO
from tests.catalog.health.made_table import (
    GB,
    KB,
    MB,
    append,
    data,
    delete,
    equality,
    lake_in,
    new_table,
    positions,
)
from tests.rings import sampled

DAYS = [f"2025-01-{day:02}" for day in range(1, 13)]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file was read."""
    found: Counter[str] = Counter()
    real = FileIO.read

    def counted(self: FileIO, location: str) -> bytes:
        found[location] += 1
        return real(self, location)

    monkeypatch.setattr(FileIO, "read", counted)
    return found


def without_sizes(health: TableHealth) -> TableHealth:
    return replace(health, charts=replace(health.charts, sizes=()))


def examined(table: Table, read: Counter[str]) -> tuple[int, int]:
    """The manifests that health opens with statistics and without; both say the same."""
    paths = {m.manifest_path for m in read_manifests(table.io, table.current_snapshot())}
    opened = []
    found = []
    for every_file in (False, True):
        read.clear()
        found.append(table.maintenance.health(every_file=every_file))
        opened.append(sum(count for path, count in read.items() if path in paths))
    assert without_sizes(found[0]) == without_sizes(found[1])
    assert found[0].charts.sizes == (found[1].charts.sizes if opened[0] == opened[1] else ())
    return opened[0], opened[1]


def compacted(folder: Path) -> Table:
    """A manifest a day, of one large file each; the last day has five small ones."""
    table = new_table(folder, by_day=True)
    for day in DAYS:
        append(table, data(GB, day=day))
    return append(table, *(data(30 * MB, day="2025-01-13") for _ in range(5)))


def test_only_manifests_of_days_with_several_files_are_opened(
    tmp_path: Path, read: Counter[str]
) -> None:
    table = compacted(tmp_path)
    assert examined(table, read) == (13, 13)
    table.maintenance.compute_partition_stats()
    assert examined(table, read) == (1, 13)
    assert table.maintenance.health().findings[0].code == "small-files"
    # the statistics are of the snapshot before
    append(table, data(GB, day="2025-01-14"))
    assert examined(table, read) == (14, 14)
    file = table.maintenance.compute_partition_stats().partition_statistics_file
    assert examined(table, read) == (1, 14)
    Path(str(file).removeprefix("file:")).unlink()
    assert examined(table, read) == (14, 14)


def test_days_of_few_bytes_need_no_manifest_whatever_their_number_of_files(
    tmp_path: Path, read: Counter[str]
) -> None:
    table = new_table(tmp_path, by_day=True)
    for day in DAYS:
        append(table, *(data(8 * MB, day=day) for _ in range(12)))
    table.maintenance.compute_partition_stats()
    assert examined(table, read) == (0, 12)
    [found] = table.maintenance.health().findings
    assert (found.code, found.evidence["small_files"]) == ("small-files", 144)
    # 96 MiB are the limit of the score
    append(table, data(1, day=DAYS[3]))
    table.maintenance.compute_partition_stats()
    assert examined(table, read) == (2, 13)


def test_deletes_are_read_with_the_files_of_their_days(tmp_path: Path, read: Counter[str]) -> None:
    table = new_table(tmp_path, by_day=True)
    first = {day: data(GB, day=day) for day in DAYS}
    for file in first.values():
        append(table, file)
    delete(table, positions(30, first[DAYS[2]]))
    delete(table, equality(5, DAYS[4]))
    delete(table, positions(3, day=DAYS[6]))
    table.maintenance.compute_partition_stats()
    assert examined(table, read) == (6, 15)


def test_a_delete_file_about_no_file_has_all_manifests_read(
    tmp_path: Path, read: Counter[str]
) -> None:
    table = new_table(tmp_path, by_day=True)
    first = {day: data(GB, day=day) for day in DAYS}
    for file in first.values():
        append(table, file)
    # about a file of another day, whose manifest statistics would spare
    delete(table, replace(positions(3, first[DAYS[1]]), partition=(DAYS[7],)))
    table.maintenance.compute_partition_stats()
    assert examined(table, read) == (13, 13)
    assert "dangling-deletes" not in [one.code for one in table.maintenance.health().findings]
    delete(table, positions(3, data(GB, day=DAYS[1])))
    table.maintenance.compute_partition_stats()
    assert examined(table, read) == (14, 14)
    assert "dangling-deletes" in [one.code for one in table.maintenance.health().findings]


def test_deletes_of_all_partitions_need_the_age_of_each_file(
    tmp_path: Path, read: Counter[str]
) -> None:
    table = compacted(tmp_path)
    delete(table, equality(3))
    table.maintenance.compute_partition_stats()
    assert examined(table, read) == (14, 14)


@pytest.mark.parametrize("need", ["order", "mapping"])
def test_orders_and_name_mappings_need_every_file(
    tmp_path: Path, read: Counter[str], need: str
) -> None:
    table = compacted(tmp_path)
    table.maintenance.compute_partition_stats()
    limits = CensusLimits(
        1, 1, **({"sort_order_id": 1} if need == "order" else {"by_snapshot": True})
    )
    snapshot = table.current_snapshot()
    manifests = read_manifests(table.io, snapshot)
    plain = CensusLimits(1, 1)
    assert known_partitions(table.metadata, table.io, snapshot, manifests, limits) is None
    assert known_partitions(table.metadata, table.io, snapshot, manifests, plain) is not None
    if need == "order":
        with table.update_sort_order() as order:
            order.asc("id")
        assert examined(table, read) == (13, 13)


def test_files_of_older_specs_are_known_too(tmp_path: Path, read: Counter[str]) -> None:
    table = new_table(tmp_path)
    append(table, data(30 * MB), data(40 * MB))
    with table.update_spec() as spec:
        spec.add_identity("day")
    for day in DAYS:
        append(table, data(GB, day=day))
    with table.update_spec() as spec:
        spec.add_field("id", "bucket[4]")
    for day in DAYS[:5]:
        append(table, *(wide(30 * MB, day, bucket) for bucket in range(4)))
    append(table, wide(GB, DAYS[0], 0))
    table.maintenance.compute_partition_stats()
    # those of the first day have a partition of two files, one of them large
    assert examined(table, read) == (2, 19)


def wide(size: int, day: str | None, bucket: int | None) -> DataFile:
    return data(size, partition=(day, bucket), spec_id=2)


@pytest.mark.seeds(40, gate=2)
def test_any_table_is_as_healthy_with_statistics_as_without(
    tmp_path: Path, read: Counter[str], seed: int
) -> None:
    draw = random.Random(seed)
    table = new_table(tmp_path)
    with table.update_spec() as spec:
        spec.add_identity("day")
    with table.update_spec() as spec:
        spec.add_field("id", "bucket[4]")
    files: list[DataFile] = []

    def file() -> DataFile:
        size = draw.choice([KB, 30 * MB, 95 * MB, 97 * MB, 200 * MB, 383 * MB, 385 * MB, GB])
        day = draw.choice([None, *DAYS])
        if draw.random() < 0.5:
            return wide(size, day, draw.choice([None, 0, 1, 2, 3]))
        return data(size, partition=(day,), spec_id=1)

    for _ in range(draw.randint(3, 12)):
        step = draw.random()
        if step < 0.75 or not files:
            added = [file() for _ in range(draw.randint(1, 3))]
            append(table, *added)
            files += added
        elif step < 0.9:
            target = draw.choice(files)
            named = positions(draw.choice([1, 60]), target)
            by_day = replace(named, lower_bounds=None, upper_bounds=None)
            by_value = equality(3, draw.choice(DAYS))
            delete(table, draw.choice([named, by_day, by_value]))
        else:
            gone = files.pop(draw.randrange(len(files)))
            table.commit(DeleteFiles(table.io).delete_data_file(gone))
        if draw.random() < 0.6:
            table.maintenance.compute_partition_stats()
        examined(table, read)


@pytest.mark.parametrize(
    ("kind", "values"),
    sampled(
        [
            (pa.int32(), [None, -5, 0, 7]),
            (pa.float64(), [None, float("nan"), -1.5, 0.0, 3.25]),
            (pa.bool_(), [None, False, True]),
            (pa.date32(), [None, -1, 0, 20_000]),
            (pa.timestamp("us", "UTC"), [None, -1, 0, 1 << 50]),
            (pa.time64("us"), [None, 0, 86_399_999_999]),
            (pa.binary(), [None, b"", b"\x7f", b"\x80\x00"]),
            (pa.binary(3), [None, b"\x00\x00\x00", b"abc"]),
            (pa.string(), [None, "", "a", "\u00e9", "\U0001f600"]),
            (pa.decimal128(9, 2), [None, "-1.50", "0.00", "9.99"]),
            (pa.uuid(), [None, b"\x00" * 16, b"\x80" * 16]),
        ],
        keep=4,
    ),
    ids=str,
)
def test_partitions_of_every_type_are_known_by_their_values(
    tmp_path: Path, read: Counter[str], kind: pa.DataType, values: list[object]
) -> None:
    lake = lake_in(tmp_path)
    kept = {"commit.manifest-merge.enabled": "false"}
    table = lake.create_table("db.t", pa.schema([("v", kind)]), properties=kept)
    with table.update_spec() as spec:
        spec.add_identity("v")
    for value in values:
        storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
        column = pa.array([value], pa.string() if isinstance(value, str) else storage).cast(storage)
        if storage is not kind:
            column = pa.ExtensionArray.from_storage(kind, column)
        table.append(pa.table({"v": column}))
    table.maintenance.compute_partition_stats()
    assert examined(table, read) == (0, len(values))
    # two files of one partition are unknown where the limit is a byte
    with table.update_properties() as update:
        update.set("write.target-file-size-bytes", "2")
    opened = []
    for value in table.scan().to_arrow().column("v").combine_chunks():
        before = table.current_snapshot().snapshot_id
        table.append(pa.table({"v": pa.array([value.as_py()], kind)}))
        table.maintenance.compute_partition_stats()
        opened.append(examined(table, read))
        table.manage_snapshots().rollback_to_snapshot(before).commit()
    unordered = pa.types.is_decimal(kind) or kind == pa.uuid()
    count = len(values)
    for reads, whole in opened:
        assert whole == count + 1
        assert (reads > 2) is unordered


def test_the_shell_reads_every_file_when_asked(
    tmp_path: Path, read: Counter[str], capfd: pytest.CaptureFixture[str]
) -> None:
    table = compacted(tmp_path)
    table.maintenance.compute_partition_stats()
    paths = {m.manifest_path for m in read_manifests(table.io, table.current_snapshot())}
    said = set()
    for options, opened in (([], 1), (["--every-file"], 13)):
        read.clear()
        cli.main(["--output", "json", "health", table.location(), *options])
        assert sum(count for path, count in read.items() if path in paths) == opened
        said.add(capfd.readouterr().out)
    assert len(said) == 1
    for every_file, opened in ((False, 1), (True, 13)):
        read.clear()
        [found] = check_health(lake_in(tmp_path), "db.t", every_file=every_file)
        assert found.error is None
        assert sum(count for path, count in read.items() if path in paths) == opened
