"""One table that Iceberg Java's library and icecomb commit to by turns and at once, its branches, and its maintenance."""

from __future__ import annotations

import datetime as dt
import gzip
import threading
import time
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.commit import commit_status
from icecomb.catalog.lost_commits import plan_reapplication, reapply
from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import BooleanType, LongType, NestedField, StringType
from tests.interop.conftest import arrow_rows, ordered
from tests.peers.iceberg_library import IcebergLibraryError
from tests.rings import sampled

SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "s", StringType())))
BY_ID = [("bucket[2]", "id", "by_id")]
TIMES = 8


def rows(first, last):
    return [[i, f"v{i}"] for i in range(first, last)]


def frame(first, last):
    return pa.table({"id": list(range(first, last)), "s": [f"v{i}" for i in range(first, last)]})


def ids(found):
    return sorted(row[0] for row in found)


def snapshots(library, name):
    """Of the history of a table, by the one and by the other, which must be the same."""
    theirs = library.iceberg.metadata(library.name(name))["snapshots"]
    ours = [(s.snapshot_id, s.parent_snapshot_id) for s in library.load(name).snapshots()]
    assert [(s["id"], s["parent"]) for s in theirs] == ours
    return dict(ours)


@pytest.mark.parametrize("locks", ["true", "false"], ids=["locks", "lock-free"])
def test_both_append_by_turns_and_at_once(library, locks):
    name = f"together_{locks}"
    properties = {"engine.hive.lock-enabled": locks, "commit.retry.num-retries": "20"}
    properties["commit.retry.min-wait-ms"] = "10"
    java = library.create(name, SCHEMA, properties=properties)
    table = library.load(name)
    for number in range(0, 4, 2):
        library.iceberg.append(java, rows(number, number + 1))
        table.refresh().append(frame(number + 1, number + 2))
    assert ids(library.agree(name)) == [0, 1, 2, 3]
    failed = []
    began = threading.Barrier(2)

    def write():
        began.wait(60)
        try:
            for number in range(TIMES):
                library.iceberg.append(java, rows(100 + number, 101 + number))
        except BaseException as error:  # noqa: BLE001 - any is a failure of the test
            failed.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    began.wait(60)
    for number in range(TIMES):
        table.append(frame(1000 + number, 1001 + number))
    writer.join()
    assert failed == []
    expected = [0, 1, 2, 3, *range(100, 100 + TIMES), *range(1000, 1000 + TIMES)]
    assert ids(library.agree(name)) == expected
    chain = snapshots(library, name)
    assert len(chain) == 4 + 2 * TIMES
    assert len(set(chain.values())) == len(chain)


@pytest.fixture(scope="module", params=sampled(["2", "1"], keep=1))
def branched(request, library):
    """Branches and tags that both made, and rows that both added to them."""
    name = f"branched_v{request.param}"
    java = library.create(name, SCHEMA, BY_ID, {"format-version": request.param})
    library.iceberg.append(java, rows(0, 10))
    library.iceberg.ask("refs", java, changes=[["tag", "first-tag"], ["branch", "audit"]])
    first = library.load(name).current_snapshot().snapshot_id
    with library.load(name).manage_snapshots() as manage:
        manage.create_tag(first, "our tag", max_ref_age_ms=10**12)
        manage.create_branch(first, "b/ü", max_snapshot_age_ms=86_400_000, min_snapshots_to_keep=5)
    library.iceberg.append(java, rows(10, 20), branch="audit")
    library.load(name).append(frame(20, 30))
    library.load(name).append(frame(30, 40), branch="audit")
    library.iceberg.append(java, rows(40, 50), branch="b/ü")
    library.load(name).append(frame(50, 60), branch="b/ü")
    library.iceberg.ask("schema", java, changes=[["add", "late", "int"]])
    return name


REFS = {
    "main": [*range(10), *range(20, 30)],
    "first-tag": [*range(10)],
    "our tag": [*range(10)],
    "audit": [*range(20), *range(30, 40)],
    "b/ü": [*range(10), *range(40, 60)],
}


def test_branches_and_tags_are_read_by_name(branched, library):
    for ref, expected in REFS.items():
        assert ids(library.java(branched, ref=ref)) == expected
        scan = library.load(branched).scan().use_ref(ref)
        assert ids(arrow_rows(scan.to_arrow())) == expected
        planned = library.iceberg.plan(library.name(branched), ref=ref)
        assert {task.file.file_path: [] for task in scan.plan_files()} == planned
        peer = library.load_peer(branched).scan().use_ref(ref).to_arrow()
        assert ids(arrow_rows(peer)) == expected


def test_what_branches_and_tags_retain_is_kept(branched, library):
    theirs = library.iceberg.metadata(library.name(branched))["refs"]
    ours = {
        name: {
            "type": ref.snapshot_ref_type.value,
            "snapshot": ref.snapshot_id,
            "max_ref_age_ms": ref.max_ref_age_ms,
            "max_snapshot_age_ms": ref.max_snapshot_age_ms,
            "min_snapshots_to_keep": ref.min_snapshots_to_keep,
        }
        for name, ref in library.load(branched).refs().items()
    }
    assert ours == theirs
    assert ours["our tag"]["max_ref_age_ms"] == 10**12
    assert ours["b/ü"]["min_snapshots_to_keep"] == 5


def test_a_branch_that_one_made_the_other_publishes_and_removes(branched, library):
    """The last of this table: it is another one afterwards."""
    name = library.name(branched)
    start = library.load(branched).refs()["first-tag"].snapshot_id
    with library.load(branched).manage_snapshots() as manage:
        manage.create_branch(start, "x")
    library.load(branched).append(frame(90, 91), branch="x")
    library.iceberg.ask("refs", name, changes=[["rollback", str(start)], ["fast_forward", "x"]])
    library.iceberg.ask("refs", name, changes=[["remove", "our tag"]])
    with library.load(branched).manage_snapshots() as manage:
        manage.remove_tag("first-tag")
    assert ids(library.agree(branched)) == [*range(10), 90]
    assert set(library.iceberg.metadata(name)["refs"]) == {"main", "audit", "b/ü", "x"}
    assert set(library.load(branched).refs()) == {"main", "audit", "b/ü", "x"}


@pytest.mark.parametrize("version", sampled(["2", "1"], keep=1))
def test_tables_that_both_maintain_are_read_and_appended_to(library, version):
    name = f"maintained_v{version}"
    properties = {"format-version": version, "commit.manifest.min-count-to-merge": "2"}
    java = library.create(name, SCHEMA, BY_ID, properties)
    for start in range(0, 40, 20):
        library.iceberg.append(java, rows(start, start + 10))
        library.load(name).append(frame(start + 10, start + 20))
    library.load(name).delete("id = 4 or id = 14 or id = 24")
    kept = [i for i in range(40) if i not in {4, 14, 24}]
    last = 40

    def our_expiry():
        now = dt.datetime.now(dt.timezone.utc)
        library.load(name).expire_snapshots().older_than(now).commit()

    for maintain in (
        lambda: library.iceberg.ask("compact", java),
        lambda: library.iceberg.ask("rewrite_manifests", java),
        lambda: library.iceberg.ask("expire", java, keep=2),
        lambda: library.load(name).maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
        lambda: library.load(name).rewrite_manifests(),
        our_expiry,
    ):
        maintain()
        assert ids(library.agree(name)) == kept
        library.load(name).append(frame(last, last + 2))
        library.iceberg.append(java, rows(last + 2, last + 4), fast=True)
        kept += range(last, last + 4)
        last += 4
        assert ids(library.agree(name, "id > 2")) == [i for i in kept if i > 2]
    assert library.agree(name, "id = 20")
    assert len(snapshots(library, name)) == 3


def test_a_table_that_one_replaces_is_the_new_one_and_keeps_its_history(library):
    fresh = Schema(
        (
            NestedField(1, "s", StringType()),
            NestedField(2, "id", LongType()),
            NestedField(3, "fresh", BooleanType()),
        )
    )
    java = library.create("replaced", SCHEMA, BY_ID)
    library.load("replaced").append(frame(0, 10))
    old = library.load("replaced").current_snapshot().snapshot_id
    replaced = [[f"p{i}", 2 * i, True] for i in range(5)]
    library.iceberg.replace(java, fresh, replaced, [("identity", "s", "s")])
    assert library.agree("replaced") == replaced
    assert library.agree("replaced", "id > 4") == replaced[3:]
    table = library.load("replaced")
    before = library.arrow_rows(table.scan(snapshot_id=old).to_arrow())
    assert before == library.java("replaced", snapshot=old) == ordered(rows(0, 10))
    table.append(pa.table({"s": ["new"], "id": [99], "fresh": [False]}))
    assert len(library.agree("replaced")) == 6
    library.catalog.replace_table((library.namespace, "replaced"), SCHEMA)
    assert library.agree("replaced") == []
    library.iceberg.append(java, rows(0, 1))
    assert library.agree("replaced") == rows(0, 1)
    assert library.java("replaced", snapshot=old) == before
    theirs = library.iceberg.metadata(java)
    assert theirs["schema"] == library.load("replaced").schema().to_json()
    assert theirs["spec"]["fields"] == []


def test_compressed_metadata_and_manifests_stay_so_and_are_read_by_both(library):
    name = "gzipped"
    java = library.create(name, SCHEMA, properties={"write.metadata.compression-codec": "gzip"})
    total = 0
    for codec in ("snappy", "zstd", "uncompressed", "gzip"):
        codecs = {f"write.{which}.compression-codec": codec for which in ("avro", "manifest")}
        library.iceberg.ask("properties", java, properties=codecs)
        library.iceberg.append(java, rows(total, total + 5), fast=True)
        library.load(name).append(frame(total + 5, total + 10))
        total += 10
        assert ids(library.agree(name, but=["peer"])) == [*range(total)]  # it lacks snappy here
    table = library.load(name)
    assert table.metadata_location.endswith(".gz.metadata.json")
    path = Path(table.metadata_location.removeprefix("file:"))
    assert gzip.decompress(path.read_bytes()).startswith(b"{")
    assert len(read_manifests(table.io, table.current_snapshot())) == 8


def test_the_codecs_of_data_files_are_read_by_the_other(library):
    codecs = {
        "parquet": ("zstd", "gzip", "snappy", "uncompressed"),
        "orc": ("zlib", "zstd", "snappy", "lz4", "none"),
        "avro": ("gzip", "zstd", "snappy", "uncompressed"),
    }
    name = "codecs"
    java = library.create(name, SCHEMA)
    total = 0
    for file_format, codec in ((f, c) for f, all_of in codecs.items() for c in all_of):
        chosen = {
            "write.format.default": file_format,
            f"write.{file_format}.compression-codec": codec,
        }
        library.iceberg.ask("properties", java, properties=chosen)
        library.iceberg.append(java, rows(total, total + 3))
        library.load(name).append(frame(total + 3, total + 6))
        total += 6
    assert library.agree(name, but=["peer"]) == ordered(rows(0, total))


@pytest.mark.parametrize("hidden", ["true", "false"])
def test_the_layout_for_object_stores_is_kept(library, hidden):
    name = f"object_{hidden}"
    properties = {
        "write.object-storage.enabled": "true",
        "write.object-storage.partitioned-paths": hidden,
    }
    library.iceberg.append(library.create(name, SCHEMA, BY_ID, properties), rows(0, 4))
    shapes = {depth(path, name) for path in library.plan(name)}
    library.load(name).append(frame(4, 8))
    assert {depth(path, name) for path in library.plan(name)} == shapes
    assert ids(library.agree(name)) == [*range(8)]


def depth(path, table):
    return path.partition(f"/{table}/")[2].count("/")


@pytest.mark.parametrize("version", sampled(["2", "1"], keep=1))
def test_tables_on_a_folder_are_read_and_continued_by_the_other(metastore, library, version):
    space, iceberg = f"db{uuid.uuid4().hex[:8]}", library.iceberg
    files = load_catalog("files", type="hadoop", warehouse=f"{metastore.warehouse}/hadoop")
    files.create_namespace(space)
    properties = {"format-version": version}
    ours = files.create_table(f"{space}.ours", SCHEMA, properties=properties)
    ours.append(frame(0, 2))
    iceberg.create(f"hadoop:{space}.theirs", SCHEMA, BY_ID, properties)
    iceberg.append(f"hadoop:{space}.theirs", rows(0, 2))
    theirs = files.load_table(f"{space}.theirs")
    for table in (ours, theirs):
        name = f"hadoop:{space}.{table.name()[-1]}"
        iceberg.append(name, rows(2, 4))
        table.refresh().append(frame(4, 6))
        iceberg.ask("delete", name, filter="id < 0")
        table.refresh().delete("id = 3")
        hint = Path(table.location().removeprefix("file:")) / "metadata/version-hint.text"
        newest = iceberg.metadata(name)["location"].rpartition("/")[2]
        assert newest == f"v{hint.read_text().strip()}.metadata.json"
        hint.unlink()
        iceberg.append(name, rows(6, 7))
        table.refresh().append(frame(7, 8))
        found = iceberg.scan(name)
        assert ordered(found) == arrow_rows(table.refresh().scan().to_arrow())
        assert ids(found) == [0, 1, 2, 4, 5, 6, 7]
        newest = iceberg.metadata(name)["location"]
        assert table.metadata_location.removeprefix("file:") == newest.removeprefix("file:")
    with pytest.raises(IcebergLibraryError, match="already exists"):
        iceberg.create(f"hadoop:{space}.ours", SCHEMA)


def test_iceberg_java_refuses_what_we_refuse(library):
    java = library.create("refused", SCHEMA)
    library.load("refused").append(frame(0, 2))
    table = library.load("refused")
    with pytest.raises(IcebergLibraryError, match="Cannot find field 'nowhere'"):
        library.iceberg.scan(java, "nowhere = 1")
    with pytest.raises(Exception, match="nowhere"):
        table.scan("nowhere = 1").to_arrow()
    with pytest.raises(IcebergLibraryError, match="Cannot change column type"):
        library.iceberg.ask("schema", java, changes=[["type", "id", "int"]])
    with pytest.raises(Exception, match="id"), table.update_schema() as update:
        update.update_column("id", StringType())
    with pytest.raises(IcebergLibraryError, match="AlreadyExists"):
        library.iceberg.create(java, SCHEMA)
    assert library.agree("refused") == rows(0, 2)


@pytest.mark.parametrize("version", sampled(["2", "1"], keep=1))
def test_the_note_of_what_was_published_is_a_property_that_others_keep(library, version):
    note = "icecomb.published-snapshots"
    name = f"published_v{version}"
    properties = {"write.wap.enabled": "true", "format-version": version}
    java = library.create(name, SCHEMA, BY_ID, properties)
    library.iceberg.append(java, rows(0, 2))
    table = library.load(name)
    table.append(frame(2, 4), {"wap.id": "load"})
    table.append(frame(4, 6))
    [staged] = [s.snapshot_id for s in table.snapshots() if s.summary.get("wap.id") == "load"]
    table.manage_snapshots().create_tag(staged, "audit").commit()
    table.publish_changes("load")
    assert ids(library.agree(name)) == [*range(6)]
    library.iceberg.append(java, rows(6, 8))
    assert ids(library.agree(name)) == [*range(8)]
    assert library.load_peer(name).properties[note] == str(staged)
    table.refresh()
    assert table.properties[note] == str(staged)
    with pytest.raises(ValidationError, match="already"):
        table.publish_changes("load")
    table.maintenance.expire_snapshots().older_than(
        dt.datetime(2100, 1, 1, tzinfo=dt.timezone.utc)
    ).retain_last(1).commit()
    with pytest.raises(ValidationError, match="already"):
        table.publish_changes("load")
    assert ids(library.agree(name)) == [*range(8)]


@pytest.mark.parametrize("lost_by", sampled(["java", "icecomb"], keep=1))
def test_a_lost_commit_that_is_brought_back_is_read_by_all(library, lost_by, monkeypatch):
    monkeypatch.setattr(commit_status, "OLD_MS", -1)
    name = f"brought_back_by_{lost_by}"
    java = library.create(name, SCHEMA, BY_ID)
    table = library.load(name)
    library.iceberg.append(java, rows(0, 2))
    client = table.catalog.client
    before = client.table(*table.name())
    if lost_by == "java":
        library.iceberg.append(java, rows(2, 4))
    else:
        table.refresh().append(frame(2, 4))
    lost = table.refresh().metadata_location
    client.alter_table(*table.name(), before)  # as Hive does before an INSERT
    library.iceberg.append(java, rows(4, 5))
    reapply(table, plan_reapplication(table, lost))
    assert library.agree(name) == rows(0, 5)
    library.iceberg.append(java, rows(5, 6))
    assert library.agree(name) == rows(0, 6)
    assert len(snapshots(library, name)) == 4


def test_a_folder_that_iceberg_java_was_given_is_the_tables(library, tmp_path):
    """It is in the metastore's entry; and there it stays when icecomb takes another one."""
    name, elsewhere = "with_a_path", tmp_path / "elsewhere"
    java = library.create(name, SCHEMA, properties={"write.data.path": f"file:{elsewhere}"})
    library.iceberg.append(java, rows(0, 1))
    table = library.load(name)
    with table.transaction() as change:
        change.remove_properties("write.data.path")
    library.iceberg.append(java, rows(1, 2))
    table.refresh().delete()
    assert [*elsewhere.rglob("*.parquet")]
    with table.expire_snapshots() as expire:
        expire.retain_last(1).older_than(int(time.time() * 1000) + 1)
    assert not expire.result.outside
    assert not [*elsewhere.rglob("*.parquet")]
