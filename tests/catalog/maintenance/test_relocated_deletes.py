"""Many delete files are rewritten side by side, whoever names them, and none is passed over."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pyarrow as pa
import pytest
from copied_table import follow, path_of

from icecomb.catalog import open_table
from icecomb.catalog.report.progress import Silent
from icecomb.format.errors import NoSuchFileError
from icecomb.format.relocation import relocation as delete_files
from icecomb.format.storage.file_io import FileIO

FILES = 12


def made(lake, commits: int, version: int = 2):
    """A table with a delete file, or a Puffin file, for each of its partitions, by so many commits."""
    numbers = range(FILES * 10)
    rows = pa.table({"id": numbers, "part": [number % FILES for number in numbers]})
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.t", rows.schema, properties=properties)
    with table.update_spec() as update:
        update.add_identity("part")
    table.append(rows)
    each = FILES // commits
    for start in range(0, FILES, each):
        table.delete(f"id >= {start} and id < {start + each}")
    return table


def is_deletes(location: str) -> bool:
    name = location.rpartition("/")[2]
    return name.endswith(".puffin") or ("delete" in name and name.endswith(".parquet"))


class Reads:
    """Reads of delete files: the most at a time, and what is done before each."""

    def __init__(self, monkeypatch, before=lambda _: None) -> None:
        self.most = self.count = self._now = 0
        lock, read = threading.Lock(), FileIO.read

        def counted(io, location):
            if not is_deletes(location):
                return read(io, location)
            with lock:
                self.count += 1
                self._now += 1
                self.most = max(self.most, self._now)
            try:
                before(location)
                return read(io, location)
            finally:
                with lock:
                    self._now -= 1

        monkeypatch.setattr(FileIO, "read", counted)


def rewrite(table, target, **arguments):
    return table.maintenance.rewrite_table_path(table.location(), str(target), **arguments)


def check(table, done, target) -> None:
    follow(done.file_list_location)
    expected = sorted(table.scan().to_arrow()["id"].to_pylist())
    assert expected == list(range(FILES, FILES * 10))
    path_of(table.location()).rename(target.with_name("gone"))
    copy = open_table(str(target / "metadata" / done.latest_version))
    assert sorted(copy.scan().to_arrow()["id"].to_pylist()) == expected


@pytest.mark.parametrize(("version", "commits"), [(2, 1), (2, FILES), (3, FILES)])
def test_delete_files_are_read_side_by_side(lake, tmp_path, monkeypatch, version, commits):
    table = made(lake, commits, version)
    together = threading.Barrier(4, timeout=20)
    with monkeypatch.context() as patched:
        reads = Reads(patched, lambda _: together.wait())
        done = rewrite(table, tmp_path / "new")
    assert reads.count == FILES
    assert reads.most <= 16
    assert done.rewritten_delete_file_paths_count == FILES
    check(table, done, tmp_path / "new")


def test_large_delete_files_are_rewritten_one_by_one(lake, tmp_path, monkeypatch):
    table = made(lake, 1)
    with monkeypatch.context() as patched:
        patched.setattr(delete_files, "SMALL_BYTES", 0)
        reads = Reads(patched)
        done = rewrite(table, tmp_path / "new")
    assert (reads.count, reads.most) == (FILES, 1)
    check(table, done, tmp_path / "new")


@pytest.mark.parametrize("commits", [1, FILES])
def test_a_missing_delete_file_among_many_is_named_and_nothing_is_left_running(
    lake, tmp_path, commits
):
    table = made(lake, commits)
    paths = sorted(path for path in path_of(table.location()).rglob("*") if is_deletes(path.name))
    assert len(paths) == FILES
    paths[FILES // 2].unlink()
    before = {*threading.enumerate()}
    with pytest.raises(NoSuchFileError, match=paths[FILES // 2].name) as caught:
        rewrite(table, tmp_path / "new")
    # while the error is held, and with it what raised it
    assert caught.value.context["path"] == str(paths[FILES // 2])
    assert {*threading.enumerate()} <= before


@pytest.mark.parametrize("version", [2, 3])
def test_progress_ends_at_the_number_of_manifests_and_delete_files(lake, tmp_path, version):
    table = made(lake, 3, version)
    seen: list[int] = []

    class Told(Silent):
        @contextmanager
        def task(self, what, total, unit):  # noqa: ARG002
            seen.append(total)
            yield seen.append

    rewrite(table, tmp_path / "new", progress=Told())
    total, *steps = seen
    assert total == sum(steps) == 1 + 3 + FILES
