"""Tables whose files, read as they are, would give other rows than Paimon does: the reason is said, nothing is made."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path

import fastavro
import pytest

from icecomb.catalog.paimon.schema_change import AddColumn, SetOption
from icecomb.catalog.paimon.source import PaimonSource
from icecomb.catalog.paimon.table_import import ImportBlockedError, plan_import, run_import
from icecomb.catalog.paimon.type_parser import parse_type
from icecomb.format.errors import (
    CommitFailedError,
    CorruptFileError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.storage.file_io import FileIO
from tests.peers.paimon_java import plain

COLUMNS = {"id": "INT", "name": "STRING"}
ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
IN_ROWS = [[1, "a"], [2, "b"]]


@pytest.fixture(scope="module")
def plain_table(paimon_java):
    """A table of two commits, to be copied and changed."""
    options = {"manifest.compression": "deflate"}
    return paimon_java.make("unchanged", COLUMNS, ROWS[:1], ROWS[1:], options=options)


@pytest.fixture
def copied(plain_table, tmp_path):
    """A copy of the table."""
    folder = tmp_path / "copied"
    shutil.copytree(plain_table.location, folder)
    return PaimonSource("copied", FileIO(), str(folder))


def refused(source, lake):
    """The reasons against an import, which then makes nothing."""
    before = {p for p in Path(source.location).rglob("*") if p.is_file()}
    plan = plan_import(source)
    assert plan.blockers
    with pytest.raises(ImportBlockedError) as caught:
        run_import(plan, lake, "db.refused")
    assert all(blocker.remedy for blocker in plan.blockers)
    reasons = [blocker.message for blocker in plan.blockers]
    assert caught.value.context["blockers"] == reasons
    assert not lake.table_exists("db.refused")
    assert {p for p in Path(source.location).rglob("*") if p.is_file()} == before
    return reasons


def rows_of(table):
    return sorted(list(map(plain, one.values())) for one in table.scan().to_arrow().to_pylist())


def test_deleted_rows_of_deletion_vectors(paimon_java, lake):
    source = paimon_java.make(
        "vectors", COLUMNS, ROWS, options={"deletion-vectors.enabled": "true"}
    )
    assert rows_of(run_import(plan_import(source), lake, "db.before")) == IN_ROWS
    paimon_java.ask(do="delete", table="vectors", position=0)
    assert paimon_java.read("vectors") == IN_ROWS[1:]
    (reason,) = refused(source, lake)
    assert reason.startswith("it has deletion vectors: rows of its files are deleted")


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_versions_of_rows_under_a_primary_key(paimon_java, lake, engine):
    name = f"keyed_{engine[:4]}"
    options = {"bucket": "1", "merge-engine": engine, "changelog-producer": "input"}
    if engine == "partial-update":
        options |= {"fields.id2.sequence-group": "name"}
    columns = {"id": "INT NOT NULL", "name": "STRING", "id2": "INT"}
    source = paimon_java.make(name, columns, ROWS, ROWS, primary=("id",), options=options)
    reasons = refused(source, lake)
    assert reasons[0].startswith("it has a primary key (id): its files hold several versions")


def test_rows_spread_over_files_of_some_columns_each(paimon_java, lake):
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    source = paimon_java.make("spread", COLUMNS, ROWS, options=options)
    assert refused(source, lake) == [
        "data-evolution.enabled: its rows are spread over several files"
    ]


def test_rows_with_numbers_of_their_own_come_over(paimon_java, lake):
    options = {"row-tracking.enabled": "true"}
    source = paimon_java.make("tracked", COLUMNS, ROWS[:1], ROWS[1:], options=options)
    assert rows_of(run_import(plan_import(source), lake, "db.tracked")) == IN_ROWS


@pytest.mark.full("needs Paimon's Java library: its files are at a place of this run")
def test_files_outside_of_the_table_come_over_from_where_they_are(paimon_java, lake, tmp_path):
    options = {
        "data-file.external-paths": (tmp_path / "outside").as_uri(),
        "data-file.external-paths.strategy": "round-robin",
    }
    source = paimon_java.make("outside", COLUMNS, ROWS, options=options)
    assert not list(Path(source.location).rglob("*.parquet"))
    table = run_import(plan_import(source), lake, "db.outside")
    assert rows_of(table) == paimon_java.read("outside") == IN_ROWS


def test_only_the_latest_rows_of_the_main_branch_come_over(paimon_java, lake):
    source = paimon_java.make("branched", COLUMNS, ROWS)
    paimon_java.ask(do="tag", table="branched", name="v1")
    paimon_java.ask(do="branch", table="branched", name="b1")
    paimon_java.write("branched", [{"id": 3, "name": "c"}])
    paimon_java.write("branched$branch_b1", [{"id": 4, "name": "d"}])
    assert len(paimon_java.read("branched$branch_b1")) == 1
    table = run_import(plan_import(source), lake, "db.branched")
    assert rows_of(table) == paimon_java.read("branched") == [*IN_ROWS, [3, "c"]]


@pytest.mark.parametrize(
    "option",
    [
        ("scan.fallback-branch", "b1"),
        ("scan.tag-name", "v1"),
        ("scan.snapshot-id", "1"),
        ("scan.mode", "compacted-full"),
        ("branch", "b1"),
        ("chain-table.enabled", "true"),
        ("fields.name.default-value", "none"),
        ("fields.name.map.storage-layout", "shared-shredding"),
    ],
    ids=lambda option: option[0],
)
def test_options_under_which_paimon_reads_other_rows(copied, lake, option):
    copied.schemas.evolve([SetOption(*option)])
    (reason,) = refused(copied, lake)
    assert option[0] in reason


def test_files_that_are_neither_parquet_nor_orc(paimon_java, lake):
    source = paimon_java.make("avros", COLUMNS, ROWS, options={"file.format": "avro"})
    (reason,) = refused(source, lake)
    assert reason.startswith("it has 1 data files neither Parquet nor ORC, the first is data-")


@pytest.mark.parametrize("kind", ["orc", "parquet"])
def test_manifests_that_are_not_avro(paimon_java, kind):
    source = paimon_java.make(f"m_{kind}", COLUMNS, ROWS, options={"manifest.format": kind})
    with pytest.raises(UnsupportedError, match="icecomb reads only Avro manifests"):
        plan_import(source)


def rewrite(path, change):
    """Change the records of an Avro file, all other bytes as fastavro writes them."""
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        schema, records = reader.writer_schema, change(list(reader))
    with path.open("wb") as file:
        fastavro.writer(file, schema, records)


def latest_manifest(source):
    found = Path(source.location) / "manifest"
    manifests = [p for p in found.iterdir() if "list" not in p.name and "index" not in p.name]
    return max(manifests, key=lambda path: path.stat().st_mtime_ns)


def in_file(record, **changes):
    return {**record, "_FILE": {**record["_FILE"], **changes}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"_WRITE_COLS": ["id"]}, "1 data files with only some of the columns"),
        ({"_DELETE_ROW_COUNT": 1}, "1 data files with deletions of rows"),
    ],
)
def test_files_that_a_manifest_says_are_not_whole(copied, lake, changes, said):
    rewrite(latest_manifest(copied), lambda records: [in_file(r, **changes) for r in records])
    (reason,) = refused(copied, lake)
    assert said in reason


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: [*r, *r], "is added twice"),
        (lambda r: [*r, in_file(r[0], _LEVEL=1, _ROW_COUNT=0)], "is named twice by the manifests"),
        (lambda r: [in_file(r[0], _ROW_COUNT=2)], "says 2 rows, its data files have 3"),
        (lambda r: [in_file(r[0], _FILE_SIZE=9)], "its manifest says 1 and 9"),
        (lambda r: [{**r[0], "_KIND": 1}], "which was never added"),
        (lambda r: [{**r[0], "_KIND": 2}], "the kind of an entry is 2"),
        (lambda r: [in_file(r[0], _FILE_NAME="data-0.parquet")], "Data file data-0.parquet of"),
    ],
    ids=range(7),
)
def test_manifests_that_would_lose_or_double_rows(copied, lake, change, said):
    rewrite(latest_manifest(copied), change)
    with pytest.raises(CorruptFileError, match=said):
        plan_import(copied)


def test_versions_that_are_not_known(copied):
    path = Path(copied.location) / "snapshot" / "snapshot-2"
    text = path.read_text()
    path.write_text(json.dumps({**json.loads(text), "version": 4}))
    with pytest.raises(UnsupportedError, match=r"snapshot-2: version 4 of snapshots is unknown"):
        plan_import(copied)
    path.write_text(text)
    manifest = latest_manifest(copied)
    rewrite(manifest, lambda records: [{**r, "_VERSION": 3} for r in records])
    with pytest.raises(UnsupportedError, match=f"{manifest.name}: version 3 of manifests"):
        plan_import(copied)


def test_a_schema_that_files_need_and_that_is_missing_is_named(copied):
    rewrite(latest_manifest(copied), lambda records: [in_file(r, _SCHEMA_ID=5) for r in records])
    with pytest.raises(FileNotFoundError, match="schema-5"):
        plan_import(copied)


@pytest.mark.parametrize("change", ["rows", "schema"])
def test_a_table_that_changed_after_the_plan_is_not_brought_over(paimon_java, lake, change):
    source = paimon_java.make(f"moving_{change}", COLUMNS, ROWS)
    plan = plan_import(source)
    if change == "rows":
        paimon_java.write(f"moving_{change}", [{"id": 3, "name": "c"}])
    else:
        source.schemas.evolve([AddColumn(("more",), parse_type("INT"))])
    with pytest.raises(CommitFailedError, match="changed while it was read: snapshot 1"):
        run_import(plan, lake, "db.moving")
    assert not lake.table_exists("db.moving")
    rows = rows_of(run_import(plan_import(source), lake, "db.moving"))
    assert rows == paimon_java.read(f"moving_{change}")


class Meanwhile(FileIO):
    """A storage on which something happens just before the first data file is opened."""

    happens = None

    def open_input(self, location, size=None):
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()
        return super().open_input(location, size)


def test_files_that_are_compacted_and_expired_while_they_are_read(paimon_java, lake):
    options = {"bucket": "1", "bucket-key": "id", "write-only": "true"}
    parts = [[{"id": n, "name": "x"}] for n in range(4)]
    source = paimon_java.make("fleeting", COLUMNS, *parts, options=options)
    io = Meanwhile()

    def compact_and_expire():
        source.schemas.evolve([SetOption("write-only", "false")])
        paimon_java.ask(do="compact", table="fleeting")
        assert paimon_java.ask(do="expire", table="fleeting") > 0

    io.happens = compact_and_expire
    with pytest.raises(CommitFailedError, match="changed while it was read: snapshot 4"):
        plan_import(PaimonSource("fleeting", io, source.location))
    rows = rows_of(run_import(plan_import(source), lake, "db.fleeting"))
    assert rows == [[n, "x"] for n in range(4)]


def test_rows_appended_after_an_import_stay_where_they_were_appended(paimon_java, lake):
    source = paimon_java.make("apart", COLUMNS, ROWS)
    table = run_import(plan_import(source), lake, "db.apart")
    paimon_java.write("apart", [{"id": 3, "name": "c"}])
    assert rows_of(table.refresh()) == IN_ROWS
    table.append(table.scan(row_filter="id = 1").to_arrow())
    assert rows_of(table) == [[1, "a"], *IN_ROWS]
    assert paimon_java.read("apart") == [*IN_ROWS, [3, "c"]]
    table.delete("id = 2")
    assert paimon_java.read("apart") == [*IN_ROWS, [3, "c"]]


def test_an_imports_second_run_and_a_purge_leave_all_files(copied, lake):
    files = {path: path.read_bytes() for path in Path(copied.location).rglob("*") if path.is_file()}
    run_import(plan_import(copied), lake, "db.once")
    with pytest.raises(TableAlreadyExistsError):
        run_import(plan_import(copied), lake, "db.once")
    with pytest.raises(ValidationError, match=r"gc\.enabled is false"):
        lake.purge_table("db.once")
    table = lake.load_table("db.once")
    assert rows_of(table) == IN_ROWS
    table.delete("id = 1")
    with pytest.raises(ValidationError, match=r"gc\.enabled"), table.expire_snapshots() as expire:
        expire.older_than(dt.datetime.now(dt.timezone.utc))
    assert files == {path: path.read_bytes() for path in files}
    assert rows_of(run_import(plan_import(copied), lake, "db.again")) == IN_ROWS
