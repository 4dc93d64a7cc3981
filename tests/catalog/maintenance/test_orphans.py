"""Orphan files: what nothing refers to goes, whatever may be needed stays."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import Table, load_catalog, open_table
from icecomb.catalog.maintenance import orphans
from icecomb.catalog.maintenance.folder_listing import FolderListing, HiddenNames
from icecomb.format.errors import (
    CorruptFileError,
    FileIOError,
    IcecombError,
    NoSuchFileError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.operation.expiry.location_keys import Spelling
from icecomb.format.operation.expiry.reachable_files import ReachableFiles
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import draft_name
from icecomb.format.storage.local import LocalFileSystem
from tests.catalog.numbered_rows import numbers
from tests.peers.stuck_file import stick

WEEK = 7 * 86_400


def age(place: Path, seconds: float = WEEK) -> None:
    """Make all files of a folder look as if they had been written a week ago."""
    then = time.time() - seconds
    for path in [place, *place.rglob("*")]:
        if path.is_file():
            os.utime(path, (then, then))


def left(path: Path, seconds: float = WEEK) -> str:
    """A file that somebody left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(numbers(999), path)
    age(path, seconds)
    return str(path)


def files(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if path.is_file()}


def ids(table: Table, **scan: Any) -> list[int]:
    return sorted(table.scan(**scan).to_arrow()["id"].to_pylist())


@pytest.fixture
def table(lake: Any) -> Table:
    """A week old table with a branch, a tag, a staged snapshot, deletes and overwritten files."""
    made = lake.create_table("db.t", numbers().schema, properties={"write.wap.enabled": "true"})
    made.append(numbers(1, 2, 3))
    made.overwrite(numbers(4, 5))
    with made.manage_snapshots() as manage:
        head = made.current_snapshot().snapshot_id
        manage.create_branch(head, "side").create_tag(head, "kept")
    made.append(numbers(6), branch="side")
    made.append(numbers(7), {"wap.id": "staged"})
    with made.update_properties() as update:
        update.set("write.delete.mode", "merge-on-read")
    made.delete("id = 5")
    age(folder(made))
    return made


def folder(table: Table) -> Path:
    return Path(table.location().removeprefix("file:"))


def remove(table: Table, **given: Any) -> orphans.OrphanFiles:
    return table.maintenance.remove_orphan_files(dry_run=False, **given)


def test_only_what_nothing_refers_to_goes(table: Table) -> None:
    before = files(folder(table))
    assert table.maintenance.remove_orphan_files().orphan_file_location == ()
    data = left(folder(table) / "data" / "left.parquet")
    meta = left(folder(table) / "metadata" / "left-m0.avro")
    young = left(folder(table) / "data" / "young.parquet", seconds=86_400 * 2)
    hidden = [
        left(folder(table) / name / "x.parquet")
        for name in ("_icecomb_migration/1", "_temporary", ".hive-staging", "data/_x")
    ]
    hidden.append(left(folder(table) / "data" / ".x.parquet.crc"))
    hidden.append(left(folder(table) / "data" / "_SUCCESS"))
    found = table.maintenance.remove_orphan_files()
    assert set(found.orphan_file_location) == {data, meta}
    assert found.deleted_files_count == 0
    assert files(folder(table)) == before | {data, meta, young, *hidden}
    done = remove(table)
    assert set(done.orphan_file_location) == {data, meta}
    assert (done.deleted_files_count, done.failed_files) == (2, ())
    assert files(folder(table)) == before | {young, *hidden}
    assert remove(table).orphan_file_location == ()
    assert ids(table) == [4]
    assert ids(table, ref="side") == [4, 5, 6]
    assert ids(table, ref="kept") == [4, 5]
    for snapshot in table.snapshots():
        table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
    table.publish_changes("staged")
    assert ids(table) == [4, 7]


def test_what_a_killed_writer_did_not_finish_is_an_orphan_once_it_is_old(table: Table) -> None:
    job = uuid.uuid4()
    local = left(folder(table) / "data" / draft_name())
    hdfs = left(folder(table) / "data" / draft_name(f"00000-1-{job}-00001.parquet"))
    young = left(folder(table) / "metadata" / draft_name(), seconds=3600)
    others = [left(folder(table) / "data" / name) for name in (".0123.tmp", ".x.parquet.tmp")]
    done = remove(table)
    assert set(done.orphan_file_location) == {local, hdfs}
    assert {young, *others} <= files(folder(table))
    assert ids(table) == [4]


def test_files_of_expired_snapshots_that_were_left_are_orphans(table: Table) -> None:
    with table.expire_snapshots() as expire:
        expire.older_than(int(time.time() * 1000) + 1).clean_expired_files(False)
    age(folder(table))
    gone = set(remove(table).orphan_file_location)
    assert any("/data/" in path for path in gone)
    assert any("snap-" in path for path in gone)
    assert ids(table.refresh()) == [4]
    assert ids(table, ref="side") == [4, 5, 6]


def test_an_age_below_a_day_must_be_allowed(table: Table) -> None:
    just = left(folder(table) / "data" / "just.parquet", seconds=60)
    now = datetime.now(timezone.utc)
    for early in (now, now - timedelta(hours=23), int(time.time() * 1000) + 10**9):
        with pytest.raises(ValidationError, match="younger than 24 hours"):
            remove(table, older_than=early)
    assert remove(table, older_than=now - timedelta(hours=25)).orphan_file_location == ()
    assert remove(table, older_than=now, any_age=True).orphan_file_location == (just,)


def test_files_of_a_job_that_still_writes_are_as_young_as_its_last(table: Table) -> None:
    job, done = uuid.uuid4(), uuid.uuid4()
    long_ago = left(folder(table) / "data" / f"00000-1-{job}-00001.parquet")
    left(folder(table) / "data" / f"00007-9-{job}-00002.parquet", seconds=3600)
    ended = left(folder(table) / "data" / f"00000-1-{done}-00001.parquet")
    assert remove(table).orphan_file_location == (ended,)
    table.add_files([long_ago])
    assert 999 in ids(table)


def test_partition_fields_that_look_hidden_are_looked_into(lake: Any) -> None:
    rows = pa.table({"_k": ["a", "b"]})
    made = lake.create_table("db.odd", rows.schema)
    with made.update_spec() as update:
        update.add_identity("_k")
    made.append(rows)
    (inside,) = {path.parent for path in folder(made).rglob("_k=a/*.parquet")}
    orphan = left(inside / "left.parquet")
    hidden = left(inside.parent / "_other" / "left.parquet")
    age(folder(made))
    assert remove(made).orphan_file_location == (orphan,)
    assert Path(hidden).exists()
    assert made.scan().to_arrow().num_rows == 2


def test_a_lost_or_damaged_manifest_ends_all_before_anything_is_deleted(table: Table) -> None:
    orphan = left(folder(table) / "data" / "left.parquet")
    listed = [s.manifest_list.removeprefix("file:") for s in table.snapshots()]
    manifests = [str(p) for p in (folder(table) / "metadata").glob("*-m*.avro")]
    for victim in (listed[0], listed[-1], *manifests):
        data = Path(victim).read_bytes()
        Path(victim).unlink()
        with pytest.raises(NoSuchFileError):
            remove(table)
        Path(victim).write_bytes(data[: len(data) // 2])
        with pytest.raises(CorruptFileError):
            remove(table)
        Path(victim).write_bytes(data)
        assert Path(orphan).exists()
    age(folder(table))
    assert remove(table).orphan_file_location == (orphan,)


def test_a_folder_that_cannot_be_listed_ends_all(table: Table, monkeypatch: Any) -> None:
    orphan = left(folder(table) / "data" / "left.parquet")
    entries = LocalFileSystem.entries

    def failing(self: Any, location: str) -> Any:
        if location.endswith("/metadata"):
            raise IcecombError("no", hint="none")
        return entries(self, location)

    monkeypatch.setattr(LocalFileSystem, "entries", failing)
    with pytest.raises(IcecombError, match="no"):
        remove(table)
    assert Path(orphan).exists()


def test_what_is_committed_between_listing_and_deleting_stays(
    table: Table, lake: Any, monkeypatch: Any
) -> None:
    taken = left(folder(table) / "data" / "taken.parquet")
    orphan = left(folder(table) / "data" / "left.parquet")
    look = orphans._Orphans.find

    def find(self: Any) -> list[str]:
        found = look(self)
        assert set(found) == {taken, orphan}
        lake.load_table("db.t").add_files([taken])
        return found

    monkeypatch.setattr(orphans._Orphans, "find", find)
    assert remove(table).orphan_file_location == (orphan,)
    assert ids(table.refresh()) == [4, 999]


def test_a_branch_and_a_rollback_meanwhile_change_nothing(
    table: Table, lake: Any, monkeypatch: Any
) -> None:
    left(folder(table) / "data" / "left.parquet")
    first = table.snapshots()[0].snapshot_id
    look = orphans._Orphans.find

    def find(self: Any) -> list[str]:
        found = look(self)
        other = lake.load_table("db.t")
        with other.manage_snapshots() as manage:
            manage.create_branch(first, "late").rollback_to_snapshot(first)
        return found

    monkeypatch.setattr(orphans._Orphans, "find", find)
    remove(table)
    assert ids(table.refresh()) == ids(table, ref="late") == [1, 2, 3]


def test_collection_of_files_that_is_forbidden_is_refused(table: Table) -> None:
    with table.update_properties() as update:
        update.set("gc.enabled", "false")
    with pytest.raises(ValidationError, match=r"gc\.enabled"):
        table.maintenance.remove_orphan_files()


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems refuse such names")
def test_names_that_are_no_text_are_left_alone_and_told(table: Table, caplog: Any) -> None:
    own = os.fsencode(folder(table))
    (orphan := folder(table) / "data" / "left.parquet").touch()
    odd = [own + name for name in (b"/data/\xff.parquet", b"/metadata/\xff.metadata.json")]
    odd.append(own + b"/data/d\xff/x.parquet")
    Path(os.fsdecode(odd[-1])).parent.mkdir()
    for path in odd:
        Path(os.fsdecode(path)).touch()
    age(folder(table))
    for given in ({}, {"quarantine": True}):
        remove(table, **given)
    assert not orphan.exists()
    assert all(map(os.path.exists, odd))
    assert "are left alone: 3, such as" in caplog.text
    assert caplog.text.isascii()
    assert remove(table, files=[(os.fsdecode(path), 0) for path in odd]).deleted_files_count == 0


def test_listed_files_outside_of_the_folder_are_left_and_counted(
    table: Table, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (own := folder(table) / "data" / "left.parquet").touch()
    listed = [own, tmp_path / "a" / "1", tmp_path / "a" / "2", tmp_path / "b" / "1"]
    for file in listed[1:]:
        file.parent.mkdir(exist_ok=True)
        file.touch()
    counts = {str(tmp_path / "a"): 2, str(tmp_path / "b"): 1}
    given = [(str(file), 0) for file in listed]
    plan = table.maintenance.remove_orphan_files(files=given)
    assert (plan.orphan_file_location, plan.left_outside) == ((str(own),), counts)
    assert "3 files outside of the searched folder: " in caplog.text
    done = remove(table, files=given)
    assert (done.deleted_files_count, done.left_outside) == (1, counts)
    assert [file.exists() for file in listed] == [False, True, True, True]
    assert remove(table).left_outside == {}


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems refuse such names")
def test_a_folder_that_is_a_link_to_a_name_that_is_no_text(table: Table, tmp_path: Path) -> None:
    data, odd = folder(table) / "data", os.fsencode(tmp_path) + b"/\xff"
    before = ids(table)
    data.rename(os.fsdecode(odd))
    data.symlink_to(os.fsdecode(odd))
    (elsewhere := data / "left.parquet").touch()
    age(folder(table))
    assert remove(table).orphan_file_location == ()
    assert remove(table, files=[(str(elsewhere), 0)]).orphan_file_location == ()
    assert ids(table.refresh()) == before


def test_a_metadata_file_by_itself_is_no_root(table: Table) -> None:
    old = min((folder(table) / "metadata").glob("v*.metadata.json"))
    with pytest.raises(UnsupportedError, match="metadata file"):
        open_table(str(old)).maintenance.remove_orphan_files()


class TestFileSystemTables:
    def test_the_hint_does_not_matter(self, table: Table) -> None:
        hint = folder(table) / "metadata" / "version-hint.text"
        for text in ("1", "rubbish", ""):
            hint.write_text(text)
            age(folder(table))
            assert remove(open_table(str(folder(table)))).orphan_file_location == ()
        assert ids(open_table(str(folder(table)))) == [4]

    def test_a_lost_version_in_the_middle_is_refused(self, table: Table) -> None:
        newest = int(table.metadata_location.rpartition("/v")[2].split(".")[0])
        (folder(table) / "metadata" / "version-hint.text").write_text("1")
        (folder(table) / "metadata" / f"v{newest - 1}.metadata.json").unlink()
        orphan = left(folder(table) / "data" / "left.parquet")
        with pytest.raises(ValidationError, match=rf"but its folder has .*v{newest}\."):
            remove(open_table(str(folder(table))))
        assert Path(orphan).exists()
        table.scan().to_arrow()


class TestOtherTables:
    def test_a_table_in_the_folder_is_passed_over(self, table: Table, tmp_path: Path) -> None:
        inner = folder(table) / "inner"
        lake = load_catalog("other", type="hadoop", warehouse=str(tmp_path / "other"))
        lake.create_namespace("db")
        other = lake.create_table("db.inner", numbers().schema, location=None)
        other.append(numbers(8))
        shutil.move(folder(other), inner)
        theirs = left(inner / "data" / "theirs.parquet")
        orphan = left(folder(table) / "data" / "left.parquet")
        age(folder(table))
        done = remove(table)
        assert done.orphan_file_location == (orphan,)
        assert set(done.other_tables) == {str(inner)}
        assert Path(theirs).exists()

    def test_a_table_of_another_uuid_in_the_same_folder_keeps_its_files(
        self, table: Table, lake: Any
    ) -> None:
        # as a catalog with a server would name it: dropped there without purging, or still there
        other = lake.create_table("db.other", numbers().schema)
        other.append(numbers(8))
        spelled = other.metadata.to_json().replace(str(folder(other)), str(folder(table)))
        for name in ("data", "metadata"):
            for path in (folder(other) / name).iterdir():
                if path.suffix in {".parquet", ".avro"}:
                    data = path.read_bytes()
                    (folder(table) / name / path.name).write_bytes(data)
        shown = folder(table) / "metadata" / f"00001-{uuid.uuid4()}.metadata.json"
        shown.write_text(spelled)
        orphan = left(folder(table) / "data" / "left.parquet")
        age(folder(table))
        # the lists of the other table name manifests where they were written
        with pytest.raises(ValidationError, match=r"outside of .* that are called the same"):
            remove(table)
        done = remove(table, prefix_mismatch_mode="IGNORE")
        assert str(shown) in done.other_tables
        lists = {s["manifest-list"] for s in json.loads(spelled)["snapshots"]}
        assert orphan in done.orphan_file_location
        assert not lists.intersection(done.orphan_file_location)
        assert shown.exists()

    @pytest.mark.parametrize("inner", ["_delta_log/0.json", "schema/schema-0", ".hoodie/x"])
    def test_the_folder_of_another_format_is_refused(self, table: Table, inner: str) -> None:
        orphan = left(folder(table) / "data" / "left.parquet")
        left(folder(table) / inner)
        with pytest.raises(ValidationError, match="its folder is also that of a"):
            remove(table)
        assert Path(orphan).exists()

    def test_a_table_of_another_format_further_down_is_passed_over(self, table: Table) -> None:
        theirs = left(folder(table) / "delta" / "part.parquet")
        left(folder(table) / "delta" / "_delta_log" / "0.json")
        done = remove(table)
        assert done.orphan_file_location == ()
        assert done.other_tables == {str(folder(table) / "delta"): "a Delta table"}
        assert Path(theirs).exists()


class TestSpellings:
    @pytest.mark.parametrize("start", ["file:", "file://", "file://localhost", "/"])
    def test_all_spellings_of_a_folder_are_one(self, table: Table, start: str) -> None:
        orphan = left(folder(table) / "data" / "left.parquet")
        place = f"{start}{folder(table)}"
        found = table.maintenance.remove_orphan_files(location=place + "/")
        assert found.orphan_file_location == (f"{place}/data/left.parquet",)
        remove(table, location=place)
        assert not Path(orphan).exists()
        assert ids(table) == [4]

    def test_a_folder_reached_by_a_link_is_the_same(self, table: Table, tmp_path: Path) -> None:
        link = tmp_path / "link"
        link.symlink_to(folder(table))
        orphan = left(folder(table) / "data" / "left.parquet")
        assert remove(table, location=str(link)).deleted_files_count == 1
        assert not Path(orphan).exists()
        assert ids(table) == [4]

    @pytest.mark.parametrize("where", ["beside it", "elsewhere in the folder", "outside"])
    def test_a_file_that_metadata_names_by_a_link_is_no_orphan(
        self, table: Table, tmp_path: Path, where: str
    ) -> None:
        named = Path(table.inspect.files().to_pylist()[0]["file_path"])
        places = {
            "beside it": named.with_name("moved.parquet"),
            "elsewhere in the folder": folder(table) / "data" / "new" / "moved.parquet",
            "outside": tmp_path / "moved.parquet",
        }
        real = places[where]
        real.parent.mkdir(exist_ok=True)
        named.rename(real)
        named.symlink_to(real)
        age(folder(table))
        orphan = left(folder(table) / "data" / "left.parquet")
        found = table.maintenance.remove_orphan_files(location=str(folder(table)))
        assert found.orphan_file_location == (orphan,)
        named_files = [str(named), str(real), orphan]
        found = table.maintenance.remove_orphan_files(files=named_files)
        assert found.orphan_file_location == (orphan,)
        assert remove(table).deleted_files_count == 1
        assert ids(table) == [4]

    def test_a_second_name_of_a_file_is_no_orphan(self, table: Table) -> None:
        named = Path(table.inspect.files().to_pylist()[0]["file_path"])
        named.with_name("second.parquet").symlink_to(named)
        assert remove(table).orphan_file_location == ()
        assert ids(table) == [4]

    def test_a_warehouse_reached_by_a_link_has_the_same_files(
        self, table: Table, tmp_path: Path
    ) -> None:
        (tmp_path / "other").symlink_to(tmp_path / "lake")
        orphan = left(folder(table) / "data" / "left.parquet")
        by_link = open_table(str(tmp_path / "other" / "db" / "t"))
        by_link.append(numbers(5))
        age(folder(table))
        found = by_link.maintenance.remove_orphan_files(location=str(tmp_path / "other/db/t"))
        assert [Path(one).resolve() for one in found.orphan_file_location] == [Path(orphan)]
        assert remove(by_link, location=str(tmp_path / "other")).deleted_files_count == 1
        assert ids(by_link) == [4, 5]

    def test_a_table_whose_folder_is_a_link_into_another_keeps_its_files(
        self, table: Table, tmp_path: Path
    ) -> None:
        inside = folder(table) / "data" / "theirs"
        theirs = left(inside / "theirs.parquet")
        (tmp_path / "link").symlink_to(inside)
        spelling = Spelling({})
        (known,) = spelling.paths(pa.array([str(tmp_path / "link")]))
        (listed,) = spelling.paths(pa.array([theirs]))
        assert listed.startswith(f"{known}/")

    def test_expiry_keeps_a_file_that_a_live_snapshot_names_by_a_link(self, lake: Any) -> None:
        table = lake.create_table("db.linked", numbers().schema)
        table.append(numbers(1, 2))
        real = Path(table.inspect.files().to_pylist()[0]["file_path"])
        table.delete()
        link = real.with_name("link.parquet")
        link.symlink_to(real)
        table.add_files([str(link)])
        table.maintenance.expire_snapshots().older_than(2**62).retain_last(1).commit()
        assert len(table.snapshots()) == 1
        assert ids(table) == [1, 2]

    def test_other_schemes_are_an_error_until_they_are_explained(self) -> None:
        def sorts(spelling: Spelling, needed: str, listed: str) -> tuple[bool, bool]:
            reachable = ReachableFiles(FileIO(), spelling)
            reachable.add([needed])
            kept, doubtful = reachable.sort(spelling.keys(pa.array([listed])))
            return bool(kept[0]), bool(doubtful[0])

        plain = Spelling({})
        told = Spelling({}, {"gs,GCS": "s3"}, {"old,older": "new"})
        kept, doubtful, unknown = (True, False), (False, True), (False, False)
        for needed, listed, without, with_ in (
            ("s3a://b/x", "s3://b/x", kept, kept),
            ("s3n://b/x", "s3a://b/x", kept, kept),
            ("S3://B/x", "s3://b/x", kept, kept),
            ("gs://b/x", "s3://b/x", doubtful, kept),
            ("gcs://b/x", "gs://b/x", kept, kept),
            ("s3a://b//y//x", "s3://b/y/x", kept, kept),  # as Hadoop writes it
            (
                "wasbs://c@a.blob.core.windows.net/x",
                "abfs://c@a.dfs.core.windows.net/x",
                kept,
                kept,
            ),
            (
                "abfs://c@a.dfs.core.windows.net/x",
                "abfs://d@a.dfs.core.windows.net/x",
                *[doubtful] * 2,
            ),
            ("s3://old/x", "s3://new/x", doubtful, kept),
            ("s3://older/x", "s3://old/x", doubtful, kept),
            ("s3://b/x", "s3://c/x", doubtful, doubtful),
            ("s3://b/x", "s3://b/y", unknown, unknown),
            ("/x", "s3://b/x", kept, kept),  # written without a scheme: in any
            ("file:/x", "s3://b/x", doubtful, doubtful),
            ("hdfs:///x", "hdfs://nn/x", kept, kept),
            ("hdfs://one/x", "hdfs://two/x", doubtful, doubtful),
        ):
            assert sorts(plain, needed, listed) == without, (needed, listed)
            assert sorts(told, needed, listed) == with_, (needed, listed)

    def test_a_scheme_that_equals_two_is_refused(self) -> None:
        with pytest.raises(ValidationError, match="equals both"):
            Spelling({}, {"a": "b", "a ,c": "d"})

    def test_the_three_modes(self, tmp_path: Path) -> None:
        lake = load_catalog("file", type="hadoop", warehouse=f"file:{tmp_path}/file")
        lake.create_namespace("db")
        table = lake.create_table("db.t", numbers().schema)
        table.append(numbers(1))
        needed = next((folder(table) / "data").glob("*.parquet"))
        elsewhere = f"s3://bucket{needed}"
        given: dict[str, Any] = {
            "files": [(elsewhere, 1)],
            "location": f"s3://bucket{folder(table)}",
        }
        look = table.maintenance.remove_orphan_files
        with pytest.raises(ValidationError, match="under another scheme or authority than s3:"):
            look(**given)
        assert look(**given, prefix_mismatch_mode="IGNORE").orphan_file_location == ()
        assert look(**given, prefix_mismatch_mode="DELETE").orphan_file_location == (elsewhere,)
        with pytest.raises(ValidationError, match="no prefix_mismatch_mode 'NONE'"):
            look(**given, prefix_mismatch_mode="NONE")


class TestNamedFiles:
    def test_files_may_be_named_instead_of_listed(self, table: Table, monkeypatch: Any) -> None:
        old, young = (left(folder(table) / "data" / f"{n}.parquet") for n in ("old", "young"))
        unnamed = left(folder(table) / "data" / "unnamed.parquet")
        timeless = left(folder(table) / "data" / "timeless.parquet")
        outside = left(folder(table).parent / "t2" / "x.parquet")
        needed = str(next((folder(table) / "metadata").glob("snap-*.avro")))
        journal = left(folder(table) / "_icecomb_migration" / "1" / "x.json")
        gone = str(folder(table) / "data" / "gone.parquet")
        now = datetime.now(timezone.utc)

        def entries(*_: Any) -> None:
            raise AssertionError("listed")

        monkeypatch.setattr(LocalFileSystem, "entries", entries)
        done = remove(
            table,
            files=[
                (old, now - timedelta(days=4)),
                (young, int(time.time() * 1000)),
                *((path, 1) for path in (needed, outside, journal)),
                timeless,
                gone,
            ],
        )
        assert set(done.orphan_file_location) == {old, timeless}
        assert all(Path(path).exists() for path in (young, unnamed, outside, needed, journal))


class TestQuarantine:
    def test_files_are_set_aside_and_the_quarantine_is_emptied(self, table: Table) -> None:
        orphan = left(folder(table) / "data" / "deep" / "left.parquet")
        data = Path(orphan).read_bytes()
        done = remove(table, quarantine=True)
        assert done.deleted_files_count == 1
        assert done.quarantine is not None
        moved = Path(done.quarantine) / "data" / "deep" / "left.parquet"
        assert moved.read_bytes() == data
        assert not Path(orphan).exists()
        assert remove(table).orphan_file_location == ()
        before = int(time.time() * 1000) - 60_000
        kept = table.maintenance.empty_quarantine(older_than=before, dry_run=False)
        assert (kept.deleted_files_count, kept.kept_files_count) == (0, 1)
        later = int(time.time() * 1000) + 60_000
        dry = table.maintenance.empty_quarantine(older_than=later)
        assert (dry.deleted_files_count, dry.deleted_bytes_count) == (1, len(data))
        assert moved.exists()
        assert table.maintenance.empty_quarantine(older_than=later, dry_run=False) == dry
        assert not Path(done.quarantine).parent.exists()
        assert ids(table) == [4]

    def test_where_nothing_can_be_renamed_files_are_copied_first(
        self, table: Table, monkeypatch: Any
    ) -> None:
        orphan = left(folder(table) / "data" / "left.parquet")
        data = Path(orphan).read_bytes()

        def rename(*_: Any) -> None:
            raise UnsupportedError("no renames here", hint="none")

        monkeypatch.setattr(LocalFileSystem, "rename", rename)
        done = remove(table, quarantine=True)
        assert (Path(done.quarantine or "") / "data" / "left.parquet").read_bytes() == data
        assert not Path(orphan).exists()

    def test_a_link_is_not_copied_as_what_it_leads_to(
        self, table: Table, monkeypatch: Any, tmp_path: Path
    ) -> None:
        private = left(tmp_path / "private")
        orphan = folder(table) / "data" / "left.parquet"
        orphan.symlink_to(private)

        def rename(*_: Any) -> None:
            raise UnsupportedError("no renames here", hint="none")

        monkeypatch.setattr(LocalFileSystem, "rename", rename)
        done = remove(table, quarantine=True)
        assert (done.deleted_files_count, done.failed_files) == (0, (str(orphan),))
        assert orphan.is_symlink()

    def test_a_copy_that_fails_leaves_the_file(self, table: Table, monkeypatch: Any) -> None:
        orphan = left(folder(table) / "data" / "left.parquet")

        def refuse(*_: Any, **__: Any) -> None:
            raise UnsupportedError("not here", hint="none")

        monkeypatch.setattr(LocalFileSystem, "rename", refuse)
        monkeypatch.setattr(LocalFileSystem, "create_stream", refuse)
        done = remove(table, quarantine=True)
        assert (done.deleted_files_count, done.failed_files) == (0, (orphan,))
        assert Path(orphan).exists()


def test_a_file_that_cannot_be_deleted_is_named(table: Table, monkeypatch: Any) -> None:
    stuck, gone = (left(folder(table) / "data" / f"{n}.parquet") for n in ("stuck", "gone"))
    stick(monkeypatch, stuck.__eq__)
    done = remove(table)
    assert set(done.orphan_file_location) == {stuck, gone}
    assert (done.deleted_files_count, done.failed_files) == (1, (stuck,))
    assert Path(stuck).exists()
    assert not Path(gone).exists()


@pytest.mark.parametrize("limit", [None, 99])
def test_folders_in_folders_have_an_end(table: Table, limit: int | None, monkeypatch: Any) -> None:
    """A server may make up one in each, with a name like any other."""
    monkeypatch.setenv("ICECOMB_MAX_FOLDER_LEVELS", "12")
    where = folder(table)
    (where / "/".join("a" * 11)).mkdir(parents=True)
    assert FolderListing(HiddenNames.of(())).walk(table.io, str(where), None) == []
    (where / "/".join("a" * 13)).mkdir(parents=True)
    with pytest.raises(FileIOError, match="levels of folders than ICECOMB_MAX_FOLDER_LEVELS: 12"):
        FolderListing(HiddenNames.of(())).walk(table.io, str(where), limit)
    with pytest.raises(FileIOError, match="more levels of folders"):
        remove(table)


@pytest.mark.parametrize("jobs", [1, 3])
def test_many_files_go_in_batches(table: Table, jobs: int) -> None:
    paths = {str(folder(table) / "data" / f"{i // 50}" / f"{i}.parquet") for i in range(2500)}
    for path in paths:
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).touch()
    age(folder(table))
    done = remove(table, max_concurrent_deletes=jobs)
    assert set(done.orphan_file_location) == paths
    assert done.deleted_files_count == 2500
    assert ids(table) == [4]
    with pytest.raises(ValidationError, match="ax_concurrent_deletes is 0"):
        remove(table, max_concurrent_deletes=0)
