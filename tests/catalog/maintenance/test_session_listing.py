"""Folders that another engine lists: the same orphans, whatever it leaves out."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from maintained_table import frame, new_table

from icecomb.catalog import cli
from icecomb.catalog.maintenance import orphans
from icecomb.catalog.maintenance.engine import Engine
from icecomb.catalog.maintenance.folder_listing import HiddenNames, ListedEntry
from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import parse_transform
from icecomb.format.storage.local import LocalFileSystem

ACTIONS = (
    "expire-snapshots",
    "rewrite-manifests",
    "rewrite-data-files",
    "rewrite-position-delete-files",
    "convert-equality-deletes",
    "remove-orphan-files",
)
OLD = time.time() - 7 * 86_400


class Elsewhere:
    """Lists as executors do; the files that it left out are counted."""

    def __init__(self):
        self.jobs = []
        self.passed = 0

    def entries(self, job):
        self.jobs.append(job)
        known = set(job.known.read_text().splitlines())
        for location, path in job.folders:
            yield from self._inside(job, known, location, path)

    def _inside(self, job, known, location, path):
        for found in sorted(Path(location.removeprefix("file:")).iterdir()):
            name, changed = found.name, int(found.stat().st_mtime * 1000)
            if found.is_dir():
                if job.deep and not re.fullmatch(job.hidden.folders, name):
                    yield from self._inside(job, known, f"{location}/{name}", f"{path}/{name}")
                else:
                    yield ListedEntry(location, name, changed, is_folder=True)
            elif re.fullmatch(job.hidden.files, name) is None:
                if f"{path}/{name}" in known and not re.fullmatch(job.always, name):
                    self.passed += 1
                else:
                    yield ListedEntry(location, name, changed, is_folder=False)


def leave(table, name, seconds=OLD):
    path = Path(table.location().removeprefix("file:")) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"PAR1")
    os.utime(path, (seconds, seconds))
    return str(path)


def found(table, engine=None, **given):
    search = orphans.OrphanSearch(
        older_than_ms=int(time.time() * 1000) - 60_000,
        engine=Engine.AUTO if engine is None else Engine.SPARK,
        session=engine,
        **given,
    )
    result = orphans.remove_orphan_files(table, search)
    return set(result.orphan_file_location), result.other_tables


@pytest.fixture
def table(lake):
    table = new_table(lake, *(frame(n, n + 10) for n in range(6)), by="bucket[4]")
    for path in Path(table.location().removeprefix("file:")).rglob("*"):
        os.utime(path, (OLD, OLD))
    leave(table, "data/p=1/left.parquet")
    leave(table, "data/deep/er/left.parquet")
    leave(table, f"data/.left.parquet.{'0' * 32}.tmp")
    leave(table, "data/_SUCCESS")
    leave(table, "data/_hidden/left.parquet")
    leave(table, "other/_delta_log/0.json")
    leave(table, "other/part-0.parquet")
    leave(table, "paimon/schema/schema-0")
    leave(table, "paimon/bucket-0/data.parquet")
    leave(table, "inner/metadata/00000-a.metadata.json")
    leave(table, "data/p=2/young.parquet", time.time())
    return table


@pytest.mark.parametrize("many", [1, 3, 1000])
def test_an_engine_that_lists_finds_what_this_machine_finds(table, monkeypatch, many):
    monkeypatch.setattr("icecomb.catalog.maintenance.folder_listing.MANY", many)
    engine = Elsewhere()
    theirs = found(table, engine)
    assert theirs == found(table)
    names = {path.rpartition("/")[2] for path in theirs[0]}
    assert {"left.parquet", f".left.parquet.{'0' * 32}.tmp"} <= names
    assert not names & {"young.parquet", "part-0.parquet", "schema-0", "data.parquet", "_SUCCESS"}
    assert engine.passed == 10 + 6 + 6  # data files, manifests, manifest lists
    assert all(job.deep == (len(job.folders) >= many) for job in engine.jobs)


def test_files_that_an_engine_tells_although_they_are_needed_stay(table):
    class Talkative(Elsewhere):
        def entries(self, job):
            job.known.write_text("")
            return super().entries(job)

    ids = table.scan().to_arrow()["id"].to_pylist()
    theirs, _ = found(table, Talkative(), dry_run=False)
    assert len(theirs) == 4
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == ids


def test_only_beyond_its_limit_this_machine_asks_a_session(table, monkeypatch):
    monkeypatch.setattr(LocalFileSystem, "is_local", False)
    engine = Elsewhere()
    search = orphans.OrphanSearch(older_than_ms=int(time.time() * 1000) - 60_000, session=engine)
    ours = set(orphans.remove_orphan_files(table, search).orphan_file_location)
    assert not engine.jobs
    # the draft in the folder of data is enough, whichever folder beside it answers first
    monkeypatch.setattr(orphans, "LOCAL_LISTING", 1)
    assert set(orphans.remove_orphan_files(table, search).orphan_file_location) == ours
    assert engine.jobs


def test_a_failing_engine_ends_all_before_anything_is_deleted(table):
    class Failing(Elsewhere):
        def entries(self, job):
            yield from list(super().entries(job))[:2]
            raise ValidationError("lost", hint="none")

    before = {path for path in Path(table.location()).rglob("*") if path.is_file()}
    with pytest.raises(ValidationError, match="lost"):
        found(table, Failing(), dry_run=False)
    assert {path for path in Path(table.location()).rglob("*") if path.is_file()} == before


def test_hidden_names_are_those_of_iceberg():
    fields = (
        PartitionField(1, 1000, parse_transform("identity"), "_k.(x)"),
        PartitionField(1, 1001, parse_transform("identity"), "plain"),
    )
    hidden = HiddenNames.of([PartitionSpec(0, fields)])
    for name in ("_SUCCESS", ".x.crc", "_k", "_kx(x)=1", "_k.(x)"):
        assert name in hidden
        assert re.fullmatch(hidden.files, name)
    for name in ("_k.(x)=1", "plain=_", "x_", "_k.(x)=\n"):
        assert name not in hidden
    for name in ("_v1.metadata.json", ".a.metadata.json.gz", f".a.parquet.{'a' * 32}.tmp"):
        assert name in hidden
        assert not re.fullmatch(hidden.files, name)


@pytest.mark.parametrize(
    "action",
    [
        "rewrite_manifests",
        "rewrite_position_delete_files",
        "convert_equality_deletes",
    ],
)
def test_actions_without_work_for_executors_refuse_spark_alone(lake, action):
    table = new_table(lake, frame(1), frame(2))
    run = getattr(table.maintenance, action)
    with pytest.raises(UnsupportedError, match="does not run on Spark's executors"):
        run(engine="spark")
    with pytest.raises(ValidationError, match="There is no engine 'flink'"):
        run(engine="flink")
    run(engine="local")
    run(engine="auto")


def test_python_has_no_executors_to_list_files(lake):
    table = new_table(lake, frame(1))
    with pytest.raises(ValidationError, match="only where a session calls"):
        table.maintenance.remove_orphan_files(engine="spark")
    assert table.maintenance.remove_orphan_files(engine="local").orphan_file_location == ()


def test_maintain_takes_an_engine(lake, capsys):
    place = new_table(lake, frame(1), frame(2)).location()
    for action in ACTIONS:
        assert cli.main(["maintain", action, place, "--engine", "local"]) == 0
        assert cli.main(["maintain", action, place, "--engine", "spark"]) == 1
        assert "Spark" in capsys.readouterr().err
