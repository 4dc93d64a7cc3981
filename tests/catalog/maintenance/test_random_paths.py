"""Tables by all their paths, copies beside them, and every command that deletes: rows of a table at its location stay.

What is checked is naive: each table at its location reads as it should, whoever ran what on a copy of it, and no
file comes twice.
"""

from __future__ import annotations

import csv
import io as bytes_io
import os
import random
import re
import shutil
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import Table, load_catalog, open_table
from icecomb.format.errors import IcecombError, ValidationError
from tests.format.hdfs.memory_hdfs import MemoryHdfs

FUTURE = int((time.time() + 86_400) * 1000)
STEPS = 14


class LocalDisk:
    """A folder, and a link to it."""

    def __init__(self, place: Path) -> None:
        self.settings: dict[str, str] = {}
        (place / "real").mkdir()
        (place / "link").symlink_to(place / "real")
        self.root, self._link = str(place / "real"), str(place / "link")

    def spelled(self, path: str, choice: random.Random) -> str:
        """Return one of the spellings of a path below the root."""
        rest = path.removeprefix(self.root)
        above, _, last = path.rpartition("/")
        plain = choice.choice([path, f"{self._link}{rest}"])
        spellings = [
            *(
                plain,
                f"file:{plain}",
                f"file://{plain}",
                f"FILE:{plain}",
                f"file://localhost{path}",
            ),
            *(
                f"{above}//{last}",
                f"{above}/./{last}",
                f"file:{above}/../{above.rpartition('/')[2]}/{last}",
            ),
        ]
        return choice.choice(spellings)

    def put(self, path: str, ids: list[int]) -> None:
        """Write a Parquet file."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(numbers(ids), path)

    def copy(self, source: str, target: str) -> None:
        """Copy a folder or a file."""
        if Path(source).is_dir():
            shutil.copytree(source, target)
        else:
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)

    def exists(self, path: str) -> bool:
        """Return whether there is a file."""
        return Path(path).exists()

    def read(self, path: str) -> pa.Table:
        """Return the rows of a file."""
        return pq.read_table(path)

    def identity(self, location: str) -> str:
        """Return one name for each file."""
        name = "/" + location.split(":", 1)[-1].lstrip("/").removeprefix("localhost/")
        return os.path.realpath(name)


class MemoryCluster:
    """A cluster in memory, by nameservice, name node, web, mount point, and a router that the settings do not explain."""

    root = "hdfs://ns/w"

    def __init__(self, memory: MemoryHdfs) -> None:
        self._memory = memory
        memory.clear()
        self.settings = {
            "fs.defaultFS": "hdfs://ns",
            "hdfs.user": "alice",
            "dfs.nameservices": "ns,fed",
            "dfs.ha.namenodes.ns": "a",
            "dfs.namenode.rpc-address.ns.a": "nn1:8020",
            "dfs.namenode.http-address.ns.a": memory.address,
            "dfs.ha.namenodes.fed": "r",
            "dfs.namenode.rpc-address.fed.r": "router:8888",
            "dfs.namenode.http-address.fed.r": memory.address.replace("127.0.0.1", "localhost"),
            "fs.viewfs.mounttable.c.link./mnt": "hdfs://ns/w",
        }

    def spelled(self, path: str, choice: random.Random) -> str:
        """Return one of the spellings of a path below the root."""
        rest = path.removeprefix("hdfs://ns")
        above, _, last = rest.rpartition("/")
        web = f"webhdfs://{self._memory.address}{rest}"
        spellings = [
            *(path, rest, f"hdfs://{rest}", f"hdfs://nn1:8020{rest}", f"webhdfs://ns{rest}", web),
            *(f"viewfs://c/mnt{rest.removeprefix('/w')}", f"HDFS://ns{rest}"),
            *(f"hdfs://nn1:8020{above}//{last}", f"hdfs://router:8888{rest}"),
        ]
        return choice.choice(spellings)

    def put(self, path: str, ids: list[int]) -> None:
        """Write a Parquet file."""
        out = bytes_io.BytesIO()
        pq.write_table(numbers(ids), out)
        self._memory.put(path.removeprefix("hdfs://ns"), out.getvalue())

    def copy(self, source: str, target: str) -> None:
        """Copy a folder or a file."""
        here, there = self.identity(source), self.identity(target)
        for name, stored in list(self._memory.files.items()):
            if name == here or name.startswith(f"{here}/"):
                self._memory.put(there + name[len(here) :], stored.data)

    def read(self, path: str) -> pa.Table:
        """Return the rows of a file."""
        return pq.read_table(pa.BufferReader(self._memory.files[self.identity(path)].data))

    def exists(self, path: str) -> bool:
        """Return whether there is a file."""
        return self.identity(path) in self._memory.files

    def identity(self, location: str) -> str:
        """Return one name for each file."""
        path = re.sub(r"^[A-Za-z]+:(//[^/]*)?", "", location)
        if location.startswith("viewfs:"):
            path = "/w" + path.removeprefix("/mnt")
        return os.path.normpath(re.sub("/+", "/", path))


def numbers(ids: list[int]) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


class World:
    """Tables at their locations with the rows that they must have, and copies of them."""

    def __init__(self, disk: Any, choice: random.Random) -> None:
        self.disk, self.choice = disk, choice
        self.rows: dict[str, Counter[int]] = {}
        self.copies: list[str] = []
        self.files: defaultdict[str, list[str]] = defaultdict(list)
        self._next = 0
        self.log: list[str] = []
        load = self.lake()
        load.create_namespace("s")
        load.create_namespace("a%20b")
        for _ in range(2):
            self.create()

    def lake(self) -> Any:
        place = self.disk.spelled(f"{self.disk.root}/lake", self.choice)
        if self.choice.random() < 0.2:
            place += "/"
        return load_catalog("lake", type="hadoop", warehouse=place, **self.disk.settings)

    def ids(self, count: int) -> list[int]:
        self._next += count
        return list(range(self._next - count, self._next))

    def path(self) -> str:
        self._next += 1
        return f"{self.disk.root}/lake/{self.choice.choice(['s', 'a%20b'])}/t{self._next}"

    def open(self, path: str) -> Table:
        if self.choice.random() < 0.5:
            return open_table(self.disk.spelled(path, self.choice), **self.disk.settings)
        return self.lake().load_table(tuple(path.split("/")[-2:]))

    def create(self) -> None:
        path, ids = self.path(), self.ids(3)
        properties = {"write.wap.enabled": "true"}
        if self.choice.random() < 0.4:
            properties["write.metadata.delete-after-commit.enabled"] = "true"
            properties["write.metadata.previous-versions-max"] = "2"
        if self.choice.random() < 0.3:
            properties["write.delete.mode"] = "merge-on-read"
        made = self.lake().create_table(
            tuple(path.split("/")[-2:]), numbers([]).schema, properties=properties
        )
        made.append(numbers(ids))
        self.rows[path] = Counter(ids)

    # what changes rows, by a table and the rows that it must have then

    def append(self, table: Table, rows: Counter[int]) -> None:
        ids = self.ids(2)
        table.append(numbers(ids))
        rows.update(ids)

    def delete(self, table: Table, rows: Counter[int]) -> None:
        one = self.choice.choice(sorted(rows) or [0])
        table.delete(f"id = {one}")
        del rows[one]

    def overwrite(self, table: Table, rows: Counter[int]) -> None:
        ids = self.ids(2)
        table.overwrite(numbers(ids))
        rows.clear()
        rows.update(ids)

    def add(self, table: Table, rows: Counter[int]) -> None:
        path = self.file(table)
        there = self.live(table)
        try:
            table.add_files([self.disk.spelled(path, self.choice)])
        except ValidationError:
            assert self.disk.identity(path) in there, path
            return
        assert self.disk.identity(path) not in there, f"{path} is there twice"
        rows.update(self.rows_of(path))

    def file(self, table: Table) -> str:
        """Return a file beside the tables that may be added, or was: it is this table's own."""
        # what was added and deleted since is gone once that expired
        mine = [one for one in self.files[table.location()] if self.disk.exists(one)]
        if not mine or self.choice.random() < 0.4:
            self._next += 1
            mine = [f"{self.disk.root}/in/f{self._next}.parquet"]
            self.disk.put(mine[0], self.ids(2))
            self.files[table.location()] += mine
        return self.choice.choice(mine)

    def pick(self, table: Table, rows: Counter[int]) -> None:
        """Stage two files, publish the first, and the second."""
        path = self.file(table)
        if self.disk.identity(path) in self.live(table):
            return
        spelled = [self.disk.spelled(path, self.choice) for _ in range(2)]
        staged = []
        for each in spelled:
            table.add_files([each], {"wap.id": f"w{uuid.uuid4()}"})
            staged.append(table.snapshots()[-1].snapshot_id)
        table.manage_snapshots().cherry_pick(staged[0]).commit()
        rows.update(self.rows_of(path))
        with pytest.raises(ValidationError):
            table.manage_snapshots().cherry_pick(staged[1]).commit()

    def compact(self, table: Table, _: Counter[int]) -> None:
        table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})

    def optimize(self, table: Table, _: Counter[int]) -> None:
        table.maintenance.rewrite_manifests()

    # what deletes files

    def expire(self, table: Table, _: Counter[int]) -> None:
        expire = table.maintenance.expire_snapshots().older_than(FUTURE).retain_last(1)
        expire.clean_expired_metadata(self.choice.random() < 0.3)
        expire.clean_expired_files(self.choice.random() < 0.8)
        expire.commit()

    def orphans(self, table: Table, _: Counter[int]) -> None:
        given: dict[str, Any] = {}
        if self.choice.random() < 0.4:
            place = self.choice.choice([*self.rows, *self.copies, f"{self.disk.root}/lake"])
            given["location"] = self.disk.spelled(place, self.choice)
        if self.choice.random() < 0.3:
            given["prefix_mismatch_mode"] = "IGNORE"
        given["quarantine"] = self.choice.random() < 0.2
        table.maintenance.remove_orphan_files(
            older_than=FUTURE, any_age=True, dry_run=False, **given
        )

    def quarantine(self, table: Table, _: Counter[int]) -> None:
        table.maintenance.empty_quarantine(older_than=FUTURE, dry_run=False)

    # what makes other paths

    def copied(self, path: str) -> None:
        target = self.path()
        self.disk.copy(path, target)
        self.copies.append(target)

    def registered(self, path: str) -> None:
        target = self.path()
        self.lake().register_table(
            tuple(target.split("/")[-2:]), open_table(path, **self.disk.settings).metadata_location
        )
        self.copies.append(target)

    def relocated(self, path: str) -> None:
        """Copy a table by rewrite_table_path: it is one of its own then."""
        target, table = self.path(), self.open(path)
        done = table.maintenance.rewrite_table_path(table.location().rstrip("/"), target)
        rows = table.io.read(done.file_list_location).decode().splitlines()
        for source, moved in csv.reader(rows):
            if moved.startswith(f"{target}/"):
                self.disk.copy(self.disk.identity(source), moved)
        self.rows[target] = Counter(self.rows[path])
        self.log.append(f"{target} is a copy by rewrite_table_path")

    def drop(self, path: str) -> None:
        self.lake().drop_table(tuple(path.split("/")[-2:]), purge_requested=True)
        self.copies.remove(path)

    def step(self) -> None:
        path = self.choice.choice(list(self.rows))
        kind = self.choice.random()
        if kind < 0.15:
            make: Callable[[str], None] = self.choice.choice(
                [self.copied, self.registered, self.relocated]
            )
            self.tried(make, path)
            return
        if kind < 0.2 and self.copies:
            self.tried(self.drop, self.choice.choice(self.copies))
            return
        is_copy = bool(self.copies) and self.choice.random() < 0.4
        change: Callable[[Table, Counter[int]], None] = self.choice.choice(
            [
                *(self.append, self.delete, self.overwrite, self.add, self.pick, self.compact),
                *(self.expire, self.expire, self.orphans, self.orphans, self.quarantine),
                self.optimize,
            ]
        )
        if is_copy:
            copy = self.choice.choice(self.copies)
            # the table at the location may have deleted what a copy needs
            self.tried(lambda one: change(self.open(one), Counter([0, 1])), copy, change.__name__)
            return
        self.log.append(f"{change.__name__} {path}")
        # another table's folder may be refused, and a router's path of the own one is
        if change in {self.orphans, self.expire, self.quarantine}:
            self.tried(lambda one: change(self.open(one), self.rows[one]), path)
        else:
            change(self.open(path), self.rows[path])

    def tried(self, work: Callable[[str], None], path: str, name: str = "") -> None:
        self.log.append(f"{name or work.__name__} {path}")
        try:
            work(path)
        except (IcecombError, FileNotFoundError, AssertionError) as error:
            self.log.append(f"  refused: {error}")

    def live(self, table: Table) -> set[str]:
        return {
            self.disk.identity(one["file_path"]) for one in table.inspect.data_files().to_pylist()
        }

    def rows_of(self, path: str) -> list[int]:
        found: list[int] = self.disk.read(path)["id"].to_pylist()
        return found

    def check(self) -> None:
        for path, rows in self.rows.items():
            found = open_table(path, **self.disk.settings).scan().to_arrow()["id"].to_pylist()
            assert Counter(found) == rows, f"{path} after:\n" + "\n".join(self.log)


def run(world: World) -> None:
    for _ in range(STEPS):
        world.step()
        world.check()


@pytest.mark.seeds(40, gate=3)
def test_no_path_of_a_table_costs_another_one_rows(seed: int, tmp_path: Path) -> None:
    run(World(LocalDisk(tmp_path), random.Random(seed)))


@pytest.fixture(scope="module")
def memory() -> Iterator[MemoryHdfs]:
    server = MemoryHdfs()
    yield server
    server.close()


@pytest.mark.seeds(30, gate=1)
def test_no_name_of_a_cluster_costs_a_table_rows(seed: int, memory: MemoryHdfs) -> None:
    run(World(MemoryCluster(memory), random.Random(seed)))
