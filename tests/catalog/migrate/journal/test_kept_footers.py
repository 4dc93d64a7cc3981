"""Footers that were read are kept until a table is migrated; none is taken for that of another file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import migrate
from icecomb.catalog.migrate.applying import migration as applying
from icecomb.catalog.migrate.applying import snapshotting
from icecomb.catalog.migrate.applying.migration import MigrationBlockedError
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal import kept_footers
from icecomb.catalog.migrate.journal.journal import FOLDER
from icecomb.catalog.migrate.planning import file_survey
from icecomb.catalog.migrate.source.footer_row import KEPT
from icecomb.catalog.report.progress import SILENT
from icecomb.format.rows.files.described_file import FileDescriber
from icecomb.format.storage.file_io import FileIO
from tests.rings import sampled

SETTLED = time.time() - 3600
KILLED = """
import os, signal, sys
from icecomb.catalog import load_catalog, migrate
from icecomb.catalog.migrate.planning import file_survey
from icecomb.catalog.migrate.journal import kept_footers
from icecomb.format.storage.file_io import FileIO
uri, warehouse, table, after, target = *sys.argv[1:4], int(sys.argv[4]), sys.argv[5]
file_survey.FEWEST, kept_footers.ROWS = 1, 10
create, count = FileIO.create, 0
def counted(self, location, data):
    global count
    create(self, location, data)
    count += "/footers/" in location
    if count == after:
        os.kill(os.getpid(), signal.SIGKILL)
FileIO.create = counted
catalog = load_catalog("killed", uri=uri, warehouse=warehouse)
migrate.snapshot(catalog, table, target) if target else migrate.apply(catalog, table)
"""


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose tails were read in this process; footers are kept by the ten, from the first on."""
    monkeypatch.setattr(file_survey, "FEWEST", 1)
    monkeypatch.setattr(kept_footers, "ROWS", 10)
    look = FileDescriber.look
    seen: list[str] = []

    def watched(self: FileDescriber, location: str, size: int | None = None) -> Any:
        seen.append(Path(location).name)
        return look(self, location, size)

    monkeypatch.setattr(FileDescriber, "look", watched)
    return seen


def numbers(*values: int, name: str = "id") -> pa.Table:
    return pa.table({name: pa.array(values, pa.int64())})


def write(table: Any, number: int, rows: pa.Table, at: float = SETTLED) -> Path:
    path: Path = table.folder / f"part-{number:02}.parquet"
    pq.write_table(rows, path)
    os.utime(path, (at, at))
    return path


def with_files(make: Any, count: int, **named: Any) -> Any:
    table = make({"id": "bigint"}, **named)
    for number in range(count):
        write(table, number, numbers(number, name="ID" if number % 2 else "id"))
    return table


def kept(table: Any) -> list[Path]:
    return sorted((table.folder / FOLDER).rglob("footers/**/*.parquet"))


def ids(table: Any) -> list[int]:
    return sorted(row["id"] for row in table.rows())


def killed(metastore: Any, table: Any, after: int, target: str = "") -> None:
    """Applies in a process that ends itself when so many files of footers were kept."""
    arguments = [metastore.uri, str(metastore.warehouse), table.name, str(after), target]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    table.break_locks()


def block(make: Any, count: int) -> Any:
    """A table whose last file stands in the way; all other footers were read."""
    table = with_files(make, count)
    write(table, count, pa.table({"id": ["text"]}))
    with pytest.raises(MigrationBlockedError):
        migrate.apply(table.catalog, table.name)
    (table.folder / f"part-{count:02}.parquet").unlink()
    return table


@pytest.mark.parametrize(("after", "left"), sampled([(3, 5), (1, 25), (4, 0)], keep=1))
def test_after_a_crash_only_what_is_missing_is_read(
    make_hive_table: Any, metastore: Any, looked: list[str], after: int, left: int
) -> None:
    table = with_files(make_hive_table, 35)
    killed(metastore, table, after)
    migrate.apply(table.catalog, table.name)
    assert len(looked) == left
    assert ids(table) == list(range(35))
    assert migrate.verify(table.catalog, table.name).difference_count == 0
    # Spellings of files that were not read again are known, too.
    assert (
        '"ID"'
        in table.catalog.load_table(table.name).metadata.properties["schema.name-mapping.default"]
    )


def test_when_a_blocker_was_mended_only_the_mended_file_is_read(
    make_hive_table: Any, looked: list[str]
) -> None:
    table = block(make_hive_table, 12)
    assert len(looked) == 13
    looked.clear()
    write(table, 12, numbers(12))
    assert migrate.plan(table.catalog, table.name).rows == 13
    assert looked == ["part-12.parquet"]
    looked.clear()
    migrate.apply(table.catalog, table.name)
    assert looked == ["part-12.parquet"]
    assert ids(table) == list(range(13))


def test_a_file_that_was_changed_since_is_read_again(
    make_hive_table: Any, looked: list[str]
) -> None:
    table = block(make_hive_table, 4)
    same_size, other_size, same_time = (
        write(table, 0, numbers(100), SETTLED + 1),
        write(table, 1, numbers(*range(200, 210))),
        table.folder / "part-02.parquet",
    )
    assert same_size.stat().st_size == same_time.stat().st_size
    assert other_size.stat().st_mtime == same_time.stat().st_mtime
    looked.clear()
    migrate.apply(table.catalog, table.name)
    assert sorted(looked) == ["part-00.parquet", "part-01.parquet"]
    assert ids(table) == [2, 3, 100, *range(200, 210)]
    assert migrate.verify(table.catalog, table.name).difference_count == 0
    found = table.catalog.load_table(table.name).scan("id = 100").to_arrow()
    assert found.num_rows == 1  # by bounds of the new file


def test_files_that_change_places_are_read_again(make_hive_table: Any, looked: list[str]) -> None:
    table = block(make_hive_table, 6)
    zero, two, four = (table.folder / f"part-{number:02}.parquet" for number in (0, 2, 4))
    assert zero.stat().st_size == two.stat().st_size
    zero.rename(table.folder / "_aside")
    two.rename(zero)
    (table.folder / "_aside").rename(two)
    pq.write_table(numbers(400), four)
    os.utime(four, (SETTLED, SETTLED))  # as `distcp -p` does
    assert zero.stat().st_mtime == two.stat().st_mtime == four.stat().st_mtime
    looked.clear()
    migrate.apply(table.catalog, table.name)
    assert sorted(looked) == ["part-00.parquet", "part-02.parquet", "part-04.parquet"]
    loaded = table.catalog.load_table(table.name)
    for number in (0, 1, 2, 3, 400, 5):
        assert loaded.scan(f"id = {number}").to_arrow().num_rows == 1


@pytest.mark.parametrize("age", sampled([0.0, -3600.0, 30.0], keep=1))
def test_a_file_changed_shortly_before_its_tail_was_read_is_read_again(
    make_hive_table: Any, looked: list[str], age: float
) -> None:
    table = make_hive_table({"id": "bigint"})
    write(table, 0, numbers(0), time.time() - age)
    write(table, 1, pa.table({"id": ["text"]}))
    with pytest.raises(MigrationBlockedError):
        migrate.apply(table.catalog, table.name)
    assert kept(table) == []
    looked.clear()
    write(table, 1, numbers(1))
    migrate.apply(table.catalog, table.name)
    assert len(looked) == 2


@pytest.mark.parametrize("untold", ["mtime_ms", "file_id"])
def test_nothing_is_taken_for_known_where_storage_tells_no_times_or_inodes(
    make_hive_table: Any, looked: list[str], monkeypatch: pytest.MonkeyPatch, untold: str
) -> None:
    listed = FileIO.list
    monkeypatch.setattr(FileIO, "list", lambda *a: (replace(one, mtime_ms=0) for one in listed(*a)))
    table = block(make_hive_table, 3)
    assert kept(table) == []
    looked.clear()
    migrate.apply(table.catalog, table.name)
    assert len(looked) == 3


def cut_off(path: Path, _: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def flipped(path: Path, _: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)


def empty(path: Path, _: Path) -> None:
    path.write_bytes(b"")


def of_other_columns(path: Path, _: Path) -> None:
    pq.write_table(pa.table({"path": ["x"], "record": [b"y"]}), path)
    path.rename(path.with_name(kept_footers._name(path.read_bytes())))


def renamed(path: Path, data_file: Path) -> None:
    path.write_bytes(data_file.read_bytes())


@pytest.mark.parametrize(
    "harm", sampled([cut_off, empty, flipped, of_other_columns, renamed], keep=2)
)
def test_what_is_not_what_was_kept_is_passed_over(
    make_hive_table: Any, looked: list[str], harm: Any
) -> None:
    table = block(make_hive_table, 15)
    harm(kept(table)[0], table.folder / "part-00.parquet")
    (kept(table)[0].parent / "notes.txt").write_text("mine")
    looked.clear()
    migrate.apply(table.catalog, table.name)
    assert len(looked) in {5, 10}  # of two files of footers, one of 10 and one of 5, one is good
    assert ids(table) == list(range(15))
    assert migrate.verify(table.catalog, table.name).difference_count == 0


def test_another_choice_or_property_or_column_reads_all_again(
    make_hive_table: Any, looked: list[str]
) -> None:
    table = block(make_hive_table, 3)
    client = table.catalog.client
    entry = table.entry

    def read(choices: Choices = Choices()) -> int:  # noqa: B008 - a frozen value
        looked.clear()
        migrate.plan(table.catalog, table.name, choices)
        return len(looked)

    def altered(**changes: Any) -> None:
        client.alter_table(entry.database, entry.name, replace(entry, **changes))

    assert read() == 0
    assert read(Choices(accept=("bucketing",))) == 0, "that changes no footer"
    altered(parameters={**entry.parameters, "write.metadata.metrics.default": "full"})
    assert read() == 3
    more = (*entry.storage.columns, replace(entry.storage.columns[0], name="other"))
    altered(storage=replace(entry.storage, columns=more))
    assert read() == 3
    altered()
    assert read() == 0


def test_files_of_a_partition_that_got_another_value_are_read_again(
    make_hive_table: Any, looked: list[str]
) -> None:
    parts = {("1",): numbers(1), ("2",): numbers(2), ("3",): pa.table({"id": ["text"]})}
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, parts)
    for path in table.folder.rglob("*.parquet"):
        os.utime(path, (SETTLED, SETTLED))
    with pytest.raises(MigrationBlockedError):
        migrate.apply(table.catalog, table.name)
    one = table.partitions[0]
    client = table.catalog.client
    database, name = table.name.split(".")
    client.partitions.drop(database, name, ["k=1", "k=3"])
    client.partitions.add([replace(one, values=("7",))])
    looked.clear()
    migrate.apply(table.catalog, table.name)
    assert len(looked) == 1
    assert sorted((row["id"], row["k"]) for row in table.rows()) == [(1, 7), (2, 2)]


def test_what_is_kept_goes_when_the_migration_is_over(
    make_hive_table: Any, metastore: Any, looked: list[str]
) -> None:
    table = block(make_hive_table, 3)
    assert len(kept(table)) == 1
    before = sorted(table.folder.rglob("*"))
    migrate.plan(table.catalog, table.name)
    assert sorted(table.folder.rglob("*")) == before, "a plan writes nothing"
    looked.clear()
    migrate.snapshot(table.catalog, table.name, f"made.of_{table.name.split('.')[1]}")
    assert looked == []
    assert sorted(table.folder.rglob("*")) == before, "nor does a second table"
    migrate.apply(table.catalog, table.name)
    assert not list((table.folder / FOLDER).rglob("footers"))
    migrate.revert(table.catalog, table.name, dry_run=False)
    killed(metastore, table, 1)
    assert len(kept(table)) == 1
    migrate.apply(table.catalog, table.name)
    assert not list((table.folder / FOLDER).rglob("footers"))


def test_a_second_table_keeps_them_in_its_own_folder(
    make_hive_table: Any, looked: list[str], tmp_path: Path
) -> None:
    table = with_files(make_hive_table, 12)
    write(table, 12, pa.table({"id": ["text"]}))
    before, home = sorted(table.folder.rglob("*")), tmp_path / "second"
    target = f"made.of_{table.name.split('.')[1]}"
    with pytest.raises(MigrationBlockedError):
        migrate.snapshot(table.catalog, table.name, target, location=home.as_uri())
    assert sorted(table.folder.rglob("*")) == before
    assert len(looked) == 13
    looked.clear()
    write(table, 12, numbers(12))
    migrate.snapshot(table.catalog, table.name, target, location=home.as_uri())
    assert looked == ["part-12.parquet"]
    assert not (home / FOLDER).exists()
    made = table.catalog.load_table(target).scan().to_arrow().column("id").to_pylist()
    assert sorted(made) == list(range(13))


def test_a_second_table_goes_on_after_a_crash(
    make_hive_table: Any, metastore: Any, looked: list[str]
) -> None:
    table = with_files(make_hive_table, 25)
    before = sorted(table.folder.rglob("*"))
    target = f"made.crashed_{table.name.split('.')[1]}"
    killed(metastore, table, 2, target)
    assert sorted(table.folder.rglob("*")) == before
    migrate.snapshot(table.catalog, table.name, target)
    assert len(looked) == 5
    made = table.catalog.load_table(target)
    assert sorted(made.scan().to_arrow().column("id").to_pylist()) == list(range(25))
    assert not (Path(made.location().removeprefix("file:")) / FOLDER).exists()


def test_without_room_for_what_is_kept_a_table_is_migrated_all_the_same(
    make_hive_table: Any, looked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from icecomb.format.errors import FileIOError

    create = FileIO.create

    def full(self: FileIO, location: str, data: bytes) -> None:
        if "/footers/" in location:
            raise FileIOError("the quota of the folder is used up")
        create(self, location, data)

    monkeypatch.setattr(FileIO, "create", full)
    table = with_files(make_hive_table, 25)
    migrate.apply(table.catalog, table.name)
    assert ids(table) == list(range(25))


@pytest.mark.parametrize("target", ["", "made.of_two_that_change"])
def test_files_that_change_places_between_look_and_turn_are_looked_at_again(
    make_hive_table: Any, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    table = make_hive_table({"id": "bigint"})
    one, two = write(table, 1, numbers(1)), write(table, 2, numbers(2))
    assert one.stat().st_size == two.stat().st_size
    asked = applying.is_unchanged
    rounds: list[bool] = []

    def changing(*arguments: Any) -> bool:
        if not rounds:
            one.rename(table.folder / "_aside")
            two.rename(one)
            (table.folder / "_aside").rename(two)
        rounds.append(asked(*arguments))
        return rounds[-1]

    for module in (applying, snapshotting):
        monkeypatch.setattr(module, "is_unchanged", changing)
    if target:
        migrate.snapshot(table.catalog, table.name, target)
    else:
        migrate.apply(table.catalog, table.name)
    assert rounds == [False, True]
    made = table.catalog.load_table(target or table.name)
    for number in (1, 2):
        assert made.scan(f"id = {number}").to_arrow()["id"].to_pylist() == [number]
    if target:
        table.catalog.drop_table(target)


def test_equal_footers_of_few_bytes_are_passed_over(tmp_path: Path) -> None:
    """A dictionary of one value makes any number of rows of a kilobyte."""
    count = 1 << 20
    values = {pa.string(): "x", pa.binary(): b"x", pa.int64(): 0}
    columns = [pa.array([values[kind]] * count, kind) for kind in KEPT.types]
    pq.write_table(pa.Table.from_arrays(columns, schema=KEPT), tmp_path / "x", compression="zstd")
    data = (tmp_path / "x").read_bytes()
    assert len(data) < 50_000
    (tmp_path / kept_footers._name(data)).write_bytes(data)
    found = kept_footers.KeptFooters(FileIO(), [str(tmp_path)], SILENT, None)
    assert not len(found._ordered)
