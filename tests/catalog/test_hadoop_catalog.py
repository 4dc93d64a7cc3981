"""What is special about file-system tables: numbered files, hints, and no lock but the file system."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog, open_table
from icecomb.catalog.commit.pointer import Committed, Conflict, MetadataVersion, Unknown
from icecomb.catalog.hadoop.pointer import HadoopPointer
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    ConfigurationError,
    FileIOError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchFileError,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.spec.change.update import Changes, SetLocationUpdate, SetPropertiesUpdate
from icecomb.format.storage.file_io import FileIO, register_file_system
from icecomb.format.storage.local import LocalFileSystem

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", "c"]})
KILLED = """
import os, signal, sys, pyarrow as pa
from icecomb.catalog import open_table
from icecomb.format.storage.local import LocalFileSystem
folder, fatal = sys.argv[1], int(sys.argv[2])
table = open_table(folder)
steps = []
def watch(name):
    real = getattr(LocalFileSystem, name)
    def watched(self, *arguments, **named):
        for when in ("before", "after"):
            steps.append(f"{when} {name}")
            if len(steps) - 1 == fatal:
                print(steps[-1], flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            if when == "before":
                answer = real(self, *arguments, **named)
        return answer
    setattr(LocalFileSystem, name, watched)
for name in ("create", "_created", "delete"):
    watch(name)
table.append(pa.table({"id": pa.array([1], pa.int64()), "s": ["x"]}))
print("lived", flush=True)
"""


class Change:
    """Updates that are committed as they are."""

    writes_files = False

    def __init__(self, *updates):
        self.updates = updates

    def apply(self, base):  # noqa: ARG002
        return Changes((), self.updates)

    def clean_up(self, committed):
        pass


def set_properties(**properties):
    return Change(SetPropertiesUpdate({k.replace("_", "."): v for k, v in properties.items()}))


CODEC = "write.metadata.compression-codec"
GZIP = Change(SetPropertiesUpdate({CODEC: "gzip"}))


@pytest.fixture
def catalog(tmp_path):
    return load_catalog("files", type="hadoop", warehouse=str(tmp_path))


@pytest.fixture
def table(catalog):
    catalog.create_namespace("db")
    return catalog.create_table("db.t", ROWS.schema)


@pytest.fixture
def metadata(table, tmp_path):
    """The table's metadata folder."""
    return tmp_path / "db" / "t" / "metadata"


def names(metadata):
    return sorted(p.name for p in metadata.iterdir() if not p.name.endswith(".avro"))


def pointer(table):
    return HadoopPointer(table.io, table.location(), "db.t", {})


def version(table):
    return MetadataVersion(table.metadata_location, table.metadata)


def test_files_are_named_as_iceberg_java_names_them(table, metadata):
    table.append(ROWS)
    table.append(ROWS)
    assert names(metadata) == [
        "v1.metadata.json", "v2.metadata.json", "v3.metadata.json", "version-hint.text",
    ]  # fmt: skip
    assert (metadata / "version-hint.text").read_bytes() == b"3"
    assert table.metadata_location == str(metadata / "v3.metadata.json")
    assert [Path(e.metadata_file).name for e in table.metadata.metadata_log] == [
        "v1.metadata.json", "v2.metadata.json",
    ]  # fmt: skip


def test_namespaces_of_many_levels_are_folders(catalog, tmp_path):
    catalog.create_namespace("a.b.c")
    table = catalog.create_table(("a", "b", "t"), ROWS.schema)
    assert table.location() == str(tmp_path / "a" / "b" / "t")
    assert catalog.list_namespaces() == [("a",)]
    assert catalog.list_namespaces("a") == [("a", "b")]
    assert catalog.list_namespaces("a.b") == [("a", "b", "c")]
    assert catalog.list_tables("a.b") == [("a", "b", "t")]
    assert catalog.list_tables("a") == []
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("a")
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_tables("a.b.t")
    with pytest.raises(ValidationError, match=r"a\.b\.t is a table"):
        catalog.create_namespace("a.b.t.x")
    with pytest.raises(NamespaceAlreadyExistsError, match="it is a table"):
        catalog.create_namespace("a.b.t")
    with pytest.raises(TableAlreadyExistsError, match="it is a namespace"):
        catalog.create_table("a.b.c", ROWS.schema)
    with pytest.raises(TableAlreadyExistsError, match="it is a namespace"):
        catalog.create_table("a", ROWS.schema)
    assert open_table("files.a.b.t", type="hadoop", warehouse=tmp_path).name() == ("a", "b", "t")


def test_a_warehouse_that_is_not_there_yet_is_empty(tmp_path):
    catalog = load_catalog("new", type="hadoop", warehouse=tmp_path / "later")
    assert catalog.list_namespaces() == []
    assert catalog.list_tables(()) == []
    assert not (tmp_path / "later").exists()
    catalog.create_table("top", ROWS.schema).append(ROWS)
    assert catalog.list_tables(()) == [("top",)]


def test_a_namespace_has_no_properties(catalog):
    with pytest.raises(UnsupportedError, match="cannot have properties"):
        catalog.create_namespace("db", {"comment": "x"})
    # as Spark makes one
    catalog.create_namespace("db", {"owner": "ann"})
    catalog.update_namespace_properties("db")
    with pytest.raises(UnsupportedError, match="cannot have properties"):
        catalog.update_namespace_properties("db", removals={"x"})


def test_a_catalog_needs_a_warehouse():
    with pytest.raises(ConfigurationError, match="warehouse"):
        load_catalog("files", type="hadoop")


def test_a_relative_warehouse_is_below_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    catalog = load_catalog("files", type="hadoop", warehouse="lake")
    assert catalog.create_table("t", ROWS.schema).location() == str(tmp_path / "lake" / "t")


@pytest.mark.full("starts processes")
def test_a_relative_warehouse_is_local_beside_the_settings_of_a_cluster(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>fs.defaultFS</name><value>hdfs://127.0.0.1:2</value>"
        "</property></configuration>"
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    catalog = load_catalog("files", type="hadoop", warehouse="lake")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    assert table.location() == f"file://{tmp_path}/lake/db/t"
    monkeypatch.chdir(tmp_path / "lake/db")
    assert open_table("./t").scan().count() == 1
    with pytest.raises(FileIOError):
        open_table(f"{tmp_path}/lake/db/t")


@pytest.mark.parametrize(
    "hint", [None, b"", b"1", b"2", b" 3\n", b"4", b"999999999999999999999", b"-1", b"x", b"\xff\x00", b"v3"],
    ids=repr,
)  # fmt: skip
def test_whatever_the_hint_says_the_newest_version_is_found(catalog, table, metadata, hint):
    table.append(ROWS)
    table.append(ROWS)
    (metadata / "version-hint.text").unlink()
    if hint is not None:
        (metadata / "version-hint.text").write_bytes(hint)
    found = catalog.load_table("db.t")
    assert found.metadata_location.endswith("/v3.metadata.json")
    assert catalog.list_tables("db") == [("db", "t")]
    found.append(ROWS)
    assert (metadata / "version-hint.text").read_bytes() == b"4"


def test_a_hint_that_is_a_folder_hinders_nobody(catalog, table, metadata):
    (metadata / "version-hint.text").unlink()
    (metadata / "version-hint.text" / "v9.metadata.json").mkdir(parents=True)
    table.append(ROWS)
    assert catalog.load_table("db.t").metadata_location.endswith("/v2.metadata.json")


def test_only_names_of_versions_count(catalog, table, metadata):
    for name in ("v07.metadata.json", "v8.metadata.json.bak", "v9.json", ".v10.metadata.json.crc",
                 "av11.metadata.json", "v12.metadata.json.gz.tmp", "v-1.metadata.json"):  # fmt: skip
        (metadata / name).write_text("{}")
    (metadata / "old").mkdir()
    (metadata / "old" / "v20.metadata.json").write_text("{}")
    (metadata / "version-hint.text").unlink()
    assert catalog.load_table("db.t").metadata_location == table.metadata_location


def test_older_versions_may_be_gone(catalog, table, metadata):
    table.append(ROWS)
    table.append(ROWS)
    (metadata / "v1.metadata.json").unlink()
    (metadata / "v2.metadata.json").unlink()
    (metadata / "version-hint.text").write_text("1")
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == 6


def test_compression_counts_from_the_next_commit_on(catalog, table, metadata):
    table.commit(GZIP)
    table.append(ROWS)
    assert names(metadata) == [
        "v1.metadata.json", "v2.metadata.json", "v3.gz.metadata.json", "version-hint.text",
    ]  # fmt: skip
    assert gzip.decompress((metadata / "v3.gz.metadata.json").read_bytes()).startswith(b"{")
    other = catalog.load_table("db.t")
    assert other.metadata == table.metadata
    other.append(ROWS)
    assert other.metadata_location.endswith("/v4.gz.metadata.json")


def test_the_old_name_of_compressed_files_is_read(catalog, table, metadata):
    table.append(ROWS)
    text = (metadata / "v2.metadata.json").read_bytes()
    (metadata / "v2.metadata.json").unlink()
    (metadata / "v2.metadata.json.gz").write_bytes(gzip.compress(text))
    (metadata / "version-hint.text").unlink()
    found = catalog.load_table("db.t")
    assert found.metadata == table.metadata
    found.append(ROWS)
    assert found.metadata_location.endswith("/v3.metadata.json")


def test_of_two_commits_on_one_base_one_wins_also_when_one_changes_the_compression(table):
    from icecomb.format.spec.change.update import update_table_metadata

    base = version(table)
    first, second = (
        MetadataVersion(staged.location, staged.metadata)
        for staged in (
            pointer(table).stage(
                base,
                update_table_metadata(base.metadata, change.updates, base_location=base.location),
            )
            for change in (GZIP, set_properties(a="1"))
        )
    )
    assert first.location == second.location
    assert pointer(table).swap(base, first) == Committed()
    assert isinstance(pointer(table).swap(base, second), Conflict)
    assert table.refresh().metadata == first.metadata


def test_the_commit_of_another_writers_compression_is_a_conflict(table, metadata):
    base = version(table)
    staged = pointer(table).stage(base, replace(table.metadata, properties={"a": "1"}))
    (metadata / "v2.gz.metadata.json").write_bytes(b"theirs")
    outcome = pointer(table).swap(base, staged)
    assert outcome == Conflict("another writer was first", str(metadata / "v2.gz.metadata.json"))
    assert names(metadata) == ["v1.metadata.json", "v2.gz.metadata.json", "version-hint.text"]


def test_a_late_commit_does_not_fill_the_gap_of_a_deleted_version(catalog, table, metadata):
    late = catalog.load_table("db.t")
    table.commit(Change(SetPropertiesUpdate({
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    })))  # fmt: skip
    for _ in range(3):
        table.append(ROWS)
    assert names(metadata) == ["v4.metadata.json", "v5.metadata.json", "version-hint.text"]
    late.append(ROWS)
    assert late.metadata_location.endswith("/v6.metadata.json")
    assert late.scan().to_arrow().num_rows == 12


def test_a_late_commit_fills_no_gap_after_a_version_that_nobody_deleted(
    catalog, table, metadata, monkeypatch
):
    late = catalog.load_table("db.t")
    table.commit(Change(SetPropertiesUpdate({
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    })))  # fmt: skip
    with monkeypatch.context() as patch:
        # as a writer that is killed when it has committed
        patch.setattr(FileIO, "delete", lambda *_: None)
        table.append(ROWS)
    for _ in range(3):
        table.append(ROWS)
    left = ["v1.metadata.json", "v5.metadata.json", "v6.metadata.json", "version-hint.text"]
    assert names(metadata) == left
    late.append(ROWS)
    assert late.metadata_location.endswith("/v7.metadata.json")
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == 15


@pytest.mark.parametrize("filled", ["a copy of its base", "its base under another name"])
def test_a_version_that_fills_a_gap_is_no_proven_commit(table, metadata, monkeypatch, filled):
    base = version(table)
    staged = pointer(table).stage(base, replace(table.metadata, properties={"a": "1"}))
    create = LocalFileSystem.create

    def overtaken(self, location, data):
        first, seventh = metadata / "v1.metadata.json", metadata / "v7.metadata.json"
        if filled == "a copy of its base":
            seventh.write_bytes(first.read_bytes())
        else:
            first.rename(seventh)
        (metadata / "version-hint.text").write_text("7")
        create(self, location, data)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "create", overtaken)
        outcome = pointer(table).swap(base, staged)
    assert isinstance(outcome, Unknown)
    assert outcome.current == str(metadata / "v7.metadata.json")
    assert (metadata / "version-hint.text").read_text() == "7"


def test_retries_used_up_say_so_and_leave_no_file(tmp_path):
    impatient = {"lock.heartbeat-timeout-ms": "10"}
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path), **impatient)
    table = catalog.create_table("t", ROWS.schema, properties={"commit.retry.num-retries": "0"})
    # another spelling of the place: this thread does not wait for itself
    other = open_table(f"file://{tmp_path}/t", **impatient)
    append = table.new_fast_append()
    apply = append.apply

    def overtaken(base):
        other.append(ROWS)
        return apply(base)

    append.apply = overtaken
    before = len(list((tmp_path / "t" / "metadata").iterdir()))
    with pytest.raises(CommitFailedError, match="another writer was first"):
        table.commit(append)
    files = list((tmp_path / "t" / "metadata").iterdir())
    assert len(files) == before + 3
    assert table.refresh().metadata == other.metadata


@pytest.mark.parametrize("published", [True, False])
def test_an_error_after_which_the_file_is_there_is_a_success(tmp_path, published):
    """Storage may lose an answer, and is asked again then."""

    class Lossy(LocalFileSystem):
        def create(self, location, data):
            place = location.removeprefix("lossy:")
            if published or "v2." not in place:
                super().create(place, data)
            if "v2." in place:
                raise FileIOError("the answer was lost", path=location)

        def __getattribute__(self, name):
            found = super().__getattribute__(name)
            if name in {"create", "__class__", "properties"} or not callable(found):
                return found

            def local(places=(), *rest, **options):
                if isinstance(places, str):
                    return found(places.removeprefix("lossy:"), *rest, **options)
                return found(*([p.removeprefix("lossy:") for p in places], *rest)[not places :])

            return local

    register_file_system("lossy", Lossy)
    catalog = load_catalog("files", type="hadoop", warehouse=f"lossy:{tmp_path}")
    table = catalog.create_table("t", ROWS.schema)
    if published:
        table.commit(set_properties(a="1"))
        assert catalog.load_table("t").properties["a"] == "1"
    else:
        with pytest.raises(FileIOError, match="the answer was lost"):
            table.commit(set_properties(a="1"))
        assert catalog.load_table("t").metadata == table.metadata


def test_a_published_commit_keeps_its_files_when_the_storage_fails_right_after(
    table, metadata, monkeypatch
):
    create = LocalFileSystem.create

    def fails(self, location):
        raise FileIOError(f"no connection for {location}", path=location)

    def then_away(self, location, data):
        create(self, location, data)
        if "/v2." in location:
            patch.setattr(LocalFileSystem, "exists", fails)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "create", then_away)
        with pytest.raises(CommitStateUnknownError, match="no connection"):
            table.append(ROWS)
    assert (metadata / "v2.metadata.json").is_file()
    assert table.refresh().scan().to_arrow() == ROWS


def test_a_commit_whose_file_others_have_deleted_since_is_unknown(table, metadata, monkeypatch):
    """Its answer was lost, and others went on until its file was too old to be kept."""
    create = LocalFileSystem.create

    def then_lost(self, location, data):
        create(self, location, data)
        if "/v2." in location:
            for n in (3, 4, 5):
                create(self, location.replace("/v2.", f"/v{n}."), data)
            (metadata / "version-hint.text").write_text("5")
            for n in (1, 2, 3):
                (metadata / f"v{n}.metadata.json").unlink()
            raise FileIOError("the answer was lost", path=location)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "create", then_lost)
        with pytest.raises(CommitStateUnknownError, match="the answer was lost"):
            table.append(ROWS)
    assert table.refresh().scan().to_arrow() == ROWS


def test_when_the_storage_cannot_be_asked_the_state_is_unknown(table, metadata, monkeypatch):
    def fails(self, location, *data):
        raise FileIOError(f"no connection for {location}", path=location)

    create = LocalFileSystem.create
    with monkeypatch.context() as patch:
        patch.setattr(
            LocalFileSystem, "create",
            lambda self, location, data: (create(self, location, data), fails(self, location)),
        )  # fmt: skip
        read = LocalFileSystem.read
        patch.setattr(
            LocalFileSystem, "read",
            lambda self, location: fails(self, location) if "v2" in location else read(self, location),
        )  # fmt: skip
        with pytest.raises(CommitStateUnknownError, match="no connection"):
            table.commit(set_properties(a="1"))
    assert (metadata / "v2.metadata.json").is_file()
    assert table.refresh().properties["a"] == "1"


@pytest.mark.parametrize(
    "every",
    [
        pytest.param(5, marks=pytest.mark.gate("starts Python five times")),
        pytest.param(1, marks=pytest.mark.full("starts Python for each step")),
    ],
)
def test_a_writer_killed_at_any_step_leaves_a_readable_table_and_no_lost_row(
    table, metadata, every
):
    committed = 0
    for fatal in range(every - 1, 40, every):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, table.location(), str(fatal)],
            cwd="/", capture_output=True, text=True, check=False,
        )  # fmt: skip
        step = done.stdout.strip()
        found = open_table(table.location())
        rows = found.scan().to_arrow().num_rows
        assert rows in {committed, committed + 1}, step
        committed = rows
        found.append(ROWS.slice(0, 1))
        committed += 1
        if step == "lived":
            break
        assert done.returncode == -9, done.stderr
    assert step == "lived"
    assert fatal > 10
    temporary = [
        name for name in names(metadata) if name.endswith(".metadata.json") and name[0] != "v"
    ]
    assert temporary == []


def test_the_location_cannot_change(table, tmp_path):
    before = table.metadata_location
    with pytest.raises(ValidationError, match="location of a file-system table cannot be changed"):
        table.commit(Change(SetLocationUpdate(str(tmp_path / "elsewhere"))))
    assert table.refresh().metadata_location == before


def test_metadata_lies_in_the_tables_folder_only(catalog, table, metadata):
    path = {"write.metadata.path": "/tmp/elsewhere"}  # noqa: S108 - never written
    with pytest.raises(ValidationError, match=r"cannot have write\.metadata\.path"):
        table.commit(Change(SetPropertiesUpdate(path)))
    with pytest.raises(ValidationError, match=r"cannot have write\.metadata\.path"):
        catalog.create_table("db.u", ROWS.schema, properties=path)
    assert names(metadata) == ["v1.metadata.json", "version-hint.text"]
    assert not (metadata.parent.parent / "u").exists()


def test_a_table_is_where_its_name_says(catalog, tmp_path):
    catalog.create_namespace("db")
    with pytest.raises(ValidationError, match="cannot be at"):
        catalog.create_table("db.t", ROWS.schema, location=str(tmp_path / "x"))
    place = str(tmp_path / "db" / "t")
    assert catalog.create_table("db.t", ROWS.schema, location=f"{place}/").location() == place


def test_renaming_is_refused(catalog, table):
    with pytest.raises(UnsupportedError, match="its name is its folder"):
        catalog.rename_table("db.t", "db.u")
    with pytest.raises(NoSuchTableError):
        catalog.rename_table("db.x", "db.u")
    assert catalog.list_tables("db") == [table.identifier]


def test_dropping_deletes_nothing_unless_it_is_told_to_purge(catalog, table):
    table.append(ROWS)
    with pytest.raises(ValidationError, match="cannot be dropped without its files") as caught:
        catalog.drop_table("db.t")
    assert "purge_table" in caught.value.hint
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == 3


def test_purging_deletes_the_folder_with_all_that_is_in_it_and_nothing_else(
    catalog, table, metadata, tmp_path
):
    table.append(ROWS)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (metadata.parent / "data" / "orphan").write_text("x")
    (metadata / ".v1.metadata.json.crc").write_text("x")
    catalog.create_table("db.u", ROWS.schema)
    catalog.purge_table("db.t")
    assert [path.name for path in (tmp_path / "db").iterdir()] == ["u"]
    assert (outside / "precious").is_file()


def test_purging_does_not_follow_links_out_of_the_folder(catalog, table, metadata, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (metadata.parent / "data").mkdir()
    (metadata.parent / "data" / "link").symlink_to(outside)
    with pytest.raises(FileIOError, match="it is not empty"):
        catalog.purge_table("db.t")
    assert (outside / "precious").is_file()
    assert not catalog.table_exists("db.t")


def test_a_table_whose_metadata_is_damaged_can_be_purged(catalog, table, metadata):
    (metadata / "v1.metadata.json").write_text("{")
    catalog.purge_table(table.identifier)
    assert catalog.list_tables("db") == []


def test_a_registered_table_is_a_copy(catalog, table, metadata):
    table.append(ROWS)
    copy = catalog.register_table("db.copy", table.metadata_location)
    assert copy.metadata_location.endswith("/db/copy/metadata/v1.metadata.json")
    with pytest.raises(ValidationError, match="only its metadata file"):
        copy.append(ROWS)
    own = {"own-folders.allowed-prefixes": table.location()}
    trusting = load_catalog("files", **{**catalog.properties, **own}).load_table("db.copy")
    trusting.append(ROWS)
    assert copy.refresh().scan().to_arrow().num_rows == 6
    assert table.refresh().scan().to_arrow().num_rows == 3
    assert names(metadata) == ["v1.metadata.json", "v2.metadata.json", "version-hint.text"]
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table("db.t", table.metadata_location)


def test_a_table_of_a_metastore_is_no_table_here_and_no_namespace(catalog, table, metadata):
    (metadata / "v1.metadata.json").rename(metadata / "00000-abc.metadata.json")
    assert catalog.list_tables("db") == []
    assert catalog.list_namespaces("db") == []
    with pytest.raises(
        NoSuchIcebergTableError, match=r"00000-abc\.metadata\.json belongs to a catalog"
    ):
        catalog.load_table("db.t")
    with pytest.raises(NoSuchIcebergTableError):
        catalog.purge_table("db.t")
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("db.t", ROWS.schema)
    found = open_table(metadata / "00000-abc.metadata.json")
    assert found.metadata == table.metadata


def test_below_a_file_there_is_nothing(catalog, tmp_path):
    (tmp_path / "file").write_text("x")
    assert not catalog.table_exists("file")
    assert not catalog.table_exists("file.t")
    assert catalog.list_namespaces() == []
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_tables("file")
    with pytest.raises(NamespaceAlreadyExistsError, match="it is a file"):
        catalog.create_namespace("file")
    with pytest.raises(ValidationError, match="file is a file, not a namespace"):
        catalog.create_namespace("file.inner")
    with pytest.raises(TableAlreadyExistsError, match="it is a file"):
        catalog.create_table("file", ROWS.schema)


def test_a_creation_that_was_killed_does_not_take_the_name(catalog, tmp_path):
    (tmp_path / "db" / "t" / "metadata").mkdir(parents=True)
    (tmp_path / "db" / "t" / "metadata" / ".0815.tmp").write_text("half")
    assert not catalog.table_exists("db.t")
    catalog.create_table("db.t", ROWS.schema).append(ROWS)
    assert catalog.load_table("db.t").scan().to_arrow().num_rows == 3


@pytest.mark.parametrize("spelling", ["{}", "{}/", "file:{}", "file://{}", "./t", "../db/t"])
def test_a_folder_is_opened_and_written_to(catalog, table, tmp_path, monkeypatch, spelling):
    monkeypatch.chdir(tmp_path / "db")
    found = open_table(spelling.format(table.location()))
    assert found.name() == ("t",)
    found.append(ROWS)
    assert table.refresh().scan().to_arrow().num_rows == 3
    assert found.catalog.list_tables(()) == [("t",)]
    assert found.metadata_location.endswith("/v2.metadata.json")


def test_a_metadata_file_is_opened_to_be_read_only(table, metadata):
    table.append(ROWS)
    before = set(metadata.parent.rglob("*"))
    for spelling in ("{}/v2.metadata.json", "file://{}/v2.metadata.json"):
        found = open_table(spelling.format(metadata))
        table.commit(set_properties(a="1"))
        table.commit(Change(SetPropertiesUpdate({"a": "2"})))
        assert found.refresh().scan("id > 1").to_arrow().num_rows == 2
        assert found.name() == ("t",)
        assert "a" not in found.properties
        before = set(metadata.parent.rglob("*"))
        for change in (lambda t: t.append(ROWS), lambda t: t.commit(set_properties(b="1")),
                       lambda t: t.commit(t.new_fast_append())):  # fmt: skip
            with pytest.raises(UnsupportedError, match="such a table can only be read"):
                change(found)
        assert set(metadata.parent.rglob("*")) == before


def test_what_is_no_table_is_named(tmp_path):
    with pytest.raises(NoSuchTableError, match=f"There is no table {tmp_path}/nothing"):
        open_table(tmp_path / "nothing")
    with pytest.raises(NoSuchFileError, match=r"v1\.metadata\.json"):
        open_table(tmp_path / "metadata" / "v1.metadata.json")
    with pytest.raises(ConfigurationError, match=r"is not catalog\.namespace\.table"):
        open_table("table")
    with pytest.raises(UnsupportedError, match="No file system serves"):
        open_table("nowhere://host/t")


def test_a_table_is_made_by_the_environments_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("ICECOMB_CATALOG__LAKE__TYPE", "hadoop")
    monkeypatch.setenv("ICECOMB_CATALOG__LAKE__WAREHOUSE", str(tmp_path))
    catalog = load_catalog("lake")
    catalog.create_table("t", ROWS.schema)
    assert (tmp_path / "t" / "metadata" / "v1.metadata.json").is_file()
    assert repr(catalog) == f"HadoopCatalog('lake', warehouse={str(tmp_path)!r})"


def test_pyiceberg_reads_a_table_by_its_folder_and_by_its_file(table):
    from pyiceberg.table import StaticTable

    table.append(ROWS)
    table.append(ROWS)
    for place in (table.location(), table.metadata_location):
        found = StaticTable.from_metadata(place)
        assert found.scan().to_arrow().num_rows == 6
        assert [s.snapshot_id for s in found.snapshots()] == [
            s.snapshot_id for s in table.snapshots()
        ]


def test_the_command_line_takes_a_catalog_of_folders_and_single_places(
    table, tmp_path, monkeypatch, capsys
):
    from icecomb.catalog.cli.application import run

    table.append(ROWS)
    monkeypatch.setenv("ICECOMB_CATALOG__LAKE__TYPE", "hadoop")
    monkeypatch.setenv("ICECOMB_CATALOG__LAKE__WAREHOUSE", str(tmp_path))
    assert run(["--catalog", "lake", "--output", "json", "tables", "db"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"table": "db.t"}]
    for place in (table.location(), table.metadata_location):
        assert run(["--output", "json", "head", place, "--where", "id = 2"]) == 0
        assert json.loads(capsys.readouterr().out) == [{"id": 2, "s": "b"}]
    assert run(["--catalog", "lake", "drop", "db.t", "--yes"]) == 1
    assert "cannot be dropped without its files" in capsys.readouterr().err
    assert run(["describe", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"error: There is no table {tmp_path}\n"
        "  hint: Check the name: a table is a folder with metadata/v1.metadata.json or later ones.\n"
    )


def test_two_writers_of_a_version_1_table_without_uuid_both_append(tmp_path):
    rows = pa.table({"id": pa.array([1], pa.int64())})
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    lake.create_table("db.t", rows.schema, properties={"format-version": "1"})
    first = tmp_path / "db" / "t" / "metadata" / "v1.metadata.json"
    content = json.loads(first.read_text())
    del content["table-uuid"]
    first.write_text(json.dumps(content))

    one, other = lake.load_table("db.t"), lake.load_table("db.t")
    assert one.metadata.table_uuid is None
    one.append(rows)
    other.append(rows)
    found = lake.load_table("db.t")
    assert found.scan().to_arrow().num_rows == 2
    assert found.metadata.table_uuid == one.metadata.table_uuid


@pytest.mark.parametrize("rows_too", [True, False])
def test_what_new_metadata_needs_is_on_the_disk_before_it(tmp_path, monkeypatch, rows_too):
    settings = {"warehouse": str(tmp_path), "local.sync-data-files": str(rows_too).lower()}
    table = load_catalog("files", type="hadoop", **settings).create_table("t", ROWS.schema)
    synced, named, link, sync = set(), [], os.link, os.fsync

    def watched_sync(descriptor):
        synced.add(os.fstat(descriptor).st_ino)
        sync(descriptor)

    def watched_link(source, target, **options):
        folder = (tmp_path / "t" / "metadata").stat().st_ino
        whole = os.stat(source, dir_fd=options["src_dir_fd"]).st_ino in synced
        named.append((Path(target).suffixes[-1], whole, folder in synced))
        link(source, target, **options)

    monkeypatch.setattr(os, "fsync", watched_sync)
    monkeypatch.setattr(os, "link", watched_link)
    table.append(ROWS)
    # data file, manifest, list of manifests, metadata
    assert [(kind, whole) for kind, whole, _ in named] == [
        (".parquet", rows_too), (".avro", True), (".avro", True), (".json", True)
    ]  # fmt: skip
    assert named[-1][2]
    assert (tmp_path / "t" / "metadata").stat().st_ino in synced


DYNAMO = "org.apache.iceberg.aws.dynamodb.DynamoDbLockManager"
IN_MEMORY = "org.apache.iceberg.util.LockManagers$InMemoryLockManager"


def test_a_lock_of_javas_is_refused_by_whatever_writes_and_by_nothing_that_reads(table, tmp_path):
    """Iceberg's `HadoopCatalog` takes the lock of `lock-impl`: others may count on it."""
    table.append(ROWS)
    settings = {"warehouse": str(tmp_path), "lock-impl": DYNAMO}
    locked = load_catalog("locked", type="hadoop", **settings)
    found = locked.load_table("db.t")
    assert found.scan().count() == ROWS.num_rows
    assert locked.list_tables("db") == [("db", "t")]
    before = sorted(path for path in tmp_path.rglob("*"))
    for write in (
        lambda: found.append(ROWS),
        lambda: found.delete("id = 1"),
        lambda: found.transaction().set_properties(a="b").commit_transaction(),
        lambda: locked.create_table("db.new", ROWS.schema),
        lambda: locked.register_table("db.new", found.metadata_location),
    ):
        with pytest.raises(UnsupportedError, match=f"lock-impl is {DYNAMO}") as caught:
            write()
        assert "Leave lock-impl out" in caught.value.hint
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_icebergs_lock_within_a_process_is_what_turns_are(table, tmp_path):
    settings = {"warehouse": str(tmp_path), "lock-impl": IN_MEMORY}
    same = load_catalog("same", type="hadoop", **settings).load_table("db.t")
    same.append(ROWS)
    assert same.scan().count() == ROWS.num_rows
