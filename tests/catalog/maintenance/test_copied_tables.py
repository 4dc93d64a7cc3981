"""Tables whose folder is not the location in their metadata: nothing of another table is deleted."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from maintained_table import age

from icecomb.catalog import Table, load_catalog, open_table
from icecomb.catalog.maintenance.backup import plan_relocation, relocate
from icecomb.format.errors import ConfigurationError, FileIOError, ValidationError
from tests.catalog.numbered_rows import numbers

FUTURE = 2**62


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def files(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    own = {"own-folders.allowed-prefixes": str(tmp_path)}  # else nothing is written elsewhere
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path / "lake"), **own)
    lake.create_namespace("s")
    return lake


@pytest.fixture
def table(lake: Any) -> Table:
    made = lake.create_table("s.t", numbers().schema)
    made.append(numbers(1, 2))
    made.append(numbers(3))
    return made


def copied(lake: Any, table: Table) -> Table:
    place = Path(table.location().removeprefix("file:"))
    shutil.copytree(place, place.with_name("copy"))
    return lake.load_table("s.copy")


def registered(lake: Any, table: Table) -> Table:
    return lake.register_table("s.copy", table.metadata_location)


@pytest.mark.parametrize("made", [copied, registered])
class TestAnotherFolderThanTheLocation:
    def test_nothing_is_deleted(self, lake: Any, table: Table, made: Any, tmp_path: Path) -> None:
        copy = made(lake, table)
        table.append(numbers(4))
        table.overwrite(numbers(5))
        with copy.update_properties() as update:
            update.set("write.metadata.delete-after-commit.enabled", "true")
            update.set("write.metadata.previous-versions-max", "1")
        copy.overwrite(numbers(9))
        copy.append(numbers(10))
        age(tmp_path)
        there = files(tmp_path)
        for call in (
            lambda: copy.maintenance.remove_orphan_files(dry_run=False),
            copy.maintenance.remove_orphan_files,
            lambda: copy.maintenance.remove_orphan_files(dry_run=False, location=str(tmp_path)),
            lambda: copy.maintenance.remove_orphan_files(dry_run=False, quarantine=True),
            lambda: copy.maintenance.empty_quarantine(older_than=FUTURE, dry_run=False),
            lambda: copy.maintenance.expire_snapshots().older_than(FUTURE).commit(),
            lambda: copy.maintenance.expire_snapshots().older_than(FUTURE).plan(),
        ):
            with pytest.raises(
                ValidationError, match=r"its folder is .*s/copy, but .*s/t"
            ) as caught:
                call()
            assert "icecomb table relocate" in caught.value.hint
        assert files(tmp_path) == there
        assert all(open_table(entry.metadata_file) for entry in table.metadata.metadata_log)
        lake.drop_table("s.copy", purge_requested=True)
        assert ids(lake.load_table("s.t")) == [5]

    def test_snapshots_expire_without_their_files(self, lake: Any, table: Table, made: Any) -> None:
        copy = made(lake, table)
        copy.overwrite(numbers(9))
        there = files(Path(table.location().removeprefix("file:")))
        expire = copy.maintenance.expire_snapshots().older_than(FUTURE).retain_last(1)
        expire.clean_expired_files(False).commit()
        assert len(copy.snapshots()) == 1
        assert files(Path(table.location().removeprefix("file:"))) == there
        assert ids(table.refresh()) == [1, 2, 3]


def test_a_folder_reached_by_a_link_is_the_table(table: Table, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    linked = open_table(str(tmp_path / "link/s/t"))
    linked.overwrite(numbers(5))
    linked.maintenance.expire_snapshots().older_than(FUTURE).retain_last(1).commit()
    age(tmp_path)
    linked.maintenance.remove_orphan_files(dry_run=False)
    assert ids(table.refresh()) == [5]


@pytest.mark.parametrize(("link", "to"), [("s/link", "s/t"), ("x", "s")])
def test_a_link_is_not_dropped_with_the_table_that_it_leads_to(
    lake: Any, table: Table, tmp_path: Path, link: str, to: str
) -> None:
    (tmp_path / "lake" / link).symlink_to(tmp_path / "lake" / to)
    name = "s.link" if to == "s/t" else "x.t"
    with pytest.raises(ValidationError, match=r"by a link, its folder .* is that of the table at"):
        lake.drop_table(name, purge_requested=True)
    assert ids(lake.load_table("s.t")) == [1, 2, 3]
    (tmp_path / "real").mkdir()
    moved = (tmp_path / "lake/s/t").rename(tmp_path / "real/t")
    (tmp_path / "lake/s/t").symlink_to(moved)
    lake.drop_table("s.t", purge_requested=True)
    assert files(moved) == set()


def test_what_a_table_further_down_keeps_elsewhere_is_known_though_times_do_not_tell(
    lake: Any, table: Table, tmp_path: Path
) -> None:
    own = {"own-folders.allowed-prefixes": table.location()}
    below = load_catalog("below", type="hadoop", warehouse=table.location(), **own)
    below.create_namespace("n")
    place = {"write.data.path": f"{table.location()}/beside"}
    inner = below.create_table("n.t", numbers().schema, properties=place)
    for value in range(10):
        inner.append(numbers(value))
    then = time.time() - 7 * 86_400
    for path in tmp_path.rglob("*"):
        os.utime(path, (then, then))
    assert table.maintenance.remove_orphan_files(dry_run=False).orphan_file_location == ()
    assert ids(below.load_table("n.t")) == [*range(10)]


def test_a_search_above_the_table_leaves_older_copies_of_it(
    lake: Any, table: Table, tmp_path: Path
) -> None:
    copied(lake, table)
    plan = plan_relocation(table.io, table.metadata_location, None, f"{tmp_path}/lake/s/moved")
    relocate(table.io, plan, copy=True)
    with table.update_properties() as update:
        update.set("write.metadata.previous-versions-max", "1")
    table.append(numbers(4))
    table.append(numbers(5))
    age(tmp_path)
    for name in ("s.t", "s.moved"):
        done = lake.load_table(name).maintenance.remove_orphan_files(
            location=f"{tmp_path}/lake", dry_run=False
        )
        left = {path.rpartition("/lake/s/")[2] for path in done.orphan_file_location}
        assert all(path.startswith("t/metadata/v") for path in left)
        assert ids(lake.load_table("s.copy")) == [1, 2, 3]


class TestAnotherPathOfTheSameFiles:
    def test_files_whose_names_are_needed_elsewhere_are_no_orphans(
        self, table: Table, tmp_path: Path
    ) -> None:
        here = Path(table.location().removeprefix("file:")) / "data"
        mount = tmp_path / "mount"
        with table.update_properties() as update:
            update.set("write.data.path", str(mount))
        table.append(numbers(4))
        for file in mount.iterdir():
            file.rename(here / file.name)
        left = here / "left.parquet"
        left.write_bytes(b"left")
        age(tmp_path)
        remove = table.maintenance.remove_orphan_files
        with pytest.raises(
            ValidationError, match=r"outside of .* that are called the same"
        ) as told:
            remove(dry_run=False)
        assert "prefix_mismatch_mode IGNORE" in told.value.hint
        done = remove(dry_run=False, prefix_mismatch_mode="IGNORE")
        assert done.orphan_file_location == (str(left),)
        found = remove(prefix_mismatch_mode="DELETE").orphan_file_location
        assert {Path(each).name for each in found} == {
            file.name for file in here.iterdir() if file.name in _names(table, str(mount))
        }

    def test_what_a_missing_mount_table_hides_ends_the_run(
        self, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
        first = table.inspect.data_files().to_pylist()[0]["file_path"]
        tasks = list(table.scan().plan_files())
        table.delete()
        append = table.new_fast_append()
        for file in (task.file for task in tasks):
            hidden = f"viewfs://c/wh/{Path(file.file_path).name}"
            append.append_data_file(replace(file, file_path=hidden))
        table.commit(append)
        age(tmp_path)
        there = files(tmp_path)
        with pytest.raises(ConfigurationError, match=r"viewfs://c/wh/.*no mount point of table c"):
            table.maintenance.remove_orphan_files(dry_run=False)
        expire = table.maintenance.expire_snapshots().older_than(FUTURE).retain_last(1)
        with pytest.raises(FileIOError, match="no mount point of table c"):
            expire.commit()
        assert first in {path for path in there if path in files(tmp_path)}


def _names(table: Table, folder: str) -> set[str]:
    found = table.inspect.data_files().to_pylist()
    return {Path(one["file_path"]).name for one in found if one["file_path"].startswith(folder)}
