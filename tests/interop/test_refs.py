"""Branches, tags, history and what maintenance leaves behind, shared with Iceberg Java."""

from __future__ import annotations

import datetime as dt
import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.format.manifests.manifest_list import read_manifests

pytestmark = pytest.mark.full("a second Spark reads and writes, too")


def create(readers, name, properties="'format-version'='2'"):
    readers.own(name)
    readers.java_sql(
        f"CREATE TABLE {{ns}}.{name} (id BIGINT, s STRING) USING iceberg PARTITIONED BY (bucket(2, id)) "
        f"TBLPROPERTIES ({properties})"
    )


def insert(readers, name, first, last):
    readers.java_sql(
        f"INSERT INTO {{ns}}.{name} SELECT id, concat('v', id) FROM range({first}, {last})"
    )


def rows(first: int, last: int) -> pa.Table:
    return pa.table({"id": list(range(first, last)), "s": [f"v{i}" for i in range(first, last)]})


def ids(found):
    return sorted(row[0] for row in found)


@pytest.fixture(scope="module")
def branched(readers):
    create(readers, "branched")
    insert(readers, "branched", 0, 10)
    readers.java_sql("ALTER TABLE {ns}.branched CREATE TAG `first-tag`")
    readers.java_sql("ALTER TABLE {ns}.branched CREATE BRANCH audit RETAIN 30 DAYS")
    insert(readers, "branched.branch_audit", 10, 20)
    insert(readers, "branched", 20, 30)
    readers.java_sql("ALTER TABLE {ns}.branched ADD COLUMN late INT")
    readers.load("branched").append(rows(30, 40), branch="audit")
    return "branched"


REFS = {
    "main": [*range(10), *range(20, 30)],
    "first-tag": [*range(10)],
    "audit": [*range(20), *range(30, 40)],
}


@pytest.mark.parametrize("ref", REFS)
def test_branches_and_tags_are_read_by_name(branched, readers, ref):
    scan = readers.load(branched).scan().use_ref(ref)
    found = readers.arrow_rows(scan.to_arrow())
    assert ids(found) == REFS[ref]
    assert readers.java(f"{branched} VERSION AS OF '{ref}'") == found
    assert readers.spark(f"{branched} VERSION AS OF '{ref}'") == found
    peer = readers.load_peer(branched).scan().use_ref(ref).to_arrow()
    assert ids(readers.arrow_rows(peer)) == REFS[ref]


@pytest.mark.parametrize("version", ["1", "2"])
def test_branches_and_tags_that_we_make_are_kept_by_iceberg_java(readers, version):
    name = f"named_here_v{version}"
    table = readers.catalog.create_table(
        readers.own(name), rows(0, 1).schema, properties={"format-version": version}
    )
    table.append(rows(0, 10))
    first = table.current_snapshot().snapshot_id
    with table.manage_snapshots() as manage:
        manage.create_tag(first, "first-tag", max_ref_age_ms=10**12)
        manage.create_branch(
            first, "audit", max_snapshot_age_ms=86_400_000, min_snapshots_to_keep=5
        )
    table.append(rows(10, 20), branch="audit")
    table.append(rows(20, 30))
    insert(readers, f"{name}.branch_audit", 30, 40)
    readers.java_sql(f"ALTER TABLE {{ns}}.{name} CREATE TAG theirs")
    expected = {
        "main": [*range(10), *range(20, 30)],
        "theirs": [*range(10), *range(20, 30)],
        "first-tag": [*range(10)],
        "audit": [*range(20), *range(30, 40)],
    }
    ours = readers.load(name)
    for ref, wanted in expected.items():
        assert ids(readers.java(f"{name} VERSION AS OF '{ref}'")) == wanted
        assert sorted(ours.scan().use_ref(ref).to_arrow()["id"].to_pylist()) == wanted
    kept = ours.refs()
    assert (kept["first-tag"].snapshot_id, kept["first-tag"].max_ref_age_ms) == (first, 10**12)
    assert (kept["audit"].max_snapshot_age_ms, kept["audit"].min_snapshots_to_keep) == (86400000, 5)


def test_a_point_in_time_is_the_same_state_for_all(branched, readers):
    table = readers.load(branched)
    for entry in table.history():
        moment = dt.datetime.fromtimestamp(entry.timestamp_ms / 1000, dt.timezone.utc)
        found = readers.arrow_rows(table.scan().as_of(entry.timestamp_ms).to_arrow())
        text = f"{branched} TIMESTAMP AS OF '{moment:%Y-%m-%d %H:%M:%S.%f}'"
        assert readers.java(text) == found
        assert readers.spark(text) == found


@pytest.mark.parametrize("version", ["1", "2"])
def test_tables_maintained_by_iceberg_java_are_read_and_appended_to(readers, version):
    name = f"maintained_v{version}"
    create(readers, name, f"'format-version'='{version}', 'commit.manifest.min-count-to-merge'='2'")
    for start in range(0, 40, 10):
        insert(readers, name, start, start + 10)
    readers.java_sql(f"DELETE FROM {{ns}}.{name} WHERE id % 10 = 4")
    kept = [i for i in range(40) if i % 10 != 4]
    call = f"CALL ice.system.{{}}(table => '{readers.namespace}.{name}'{{}})"
    last = 40
    for procedure, arguments in (
        ("rewrite_data_files", ", options => map('rewrite-all', 'true')"),
        ("rewrite_manifests", ""),
        ("expire_snapshots", ", older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1"),
    ):
        readers.java_sql(call.format(procedure, arguments))
        assert ids(readers.python(name)) == kept
        assert readers.plan(name) == readers.java_plan(name)
        readers.load(name).append(rows(last, last + 5))
        readers.spark_sql(f"INSERT INTO {{ns}}.{name} VALUES ({last + 5}, 'spark')")
        kept += range(last, last + 6)
        last += 6
        assert ids(readers.agree(name)) == kept
        assert readers.plan(name, "id = 20") == readers.java_plan(name, "id = 20")


def test_a_table_replaced_by_iceberg_java_is_the_new_one_and_keeps_its_history(readers):
    create(readers, "replaced")
    insert(readers, "replaced", 0, 10)
    before = readers.load("replaced")
    old = before.current_snapshot().snapshot_id
    readers.java_sql(
        "CREATE OR REPLACE TABLE {ns}.replaced USING iceberg PARTITIONED BY (s) "
        "AS SELECT concat('p', id) AS s, id * 2 AS id, true AS fresh FROM range(5)"
    )
    assert readers.agree("replaced") == [[f"p{i}", 2 * i, True] for i in range(5)]
    assert readers.agree("replaced", "id > 4") == [["p3", 6, True], ["p4", 8, True]]
    table = readers.load("replaced")
    assert readers.arrow_rows(table.scan(snapshot_id=old).to_arrow()) == readers.java(
        f"replaced VERSION AS OF {old}"
    )
    table.append(pa.table({"s": ["new"], "id": [99], "fresh": [False]}))
    assert len(readers.agree("replaced")) == 6
    readers.java_sql("CREATE OR REPLACE TABLE {ns}.replaced (id BIGINT) USING iceberg")
    assert readers.agree("replaced") == []
    readers.load("replaced").append(pa.table({"id": [1]}))
    assert readers.agree("replaced") == [[1]]


def test_compressed_metadata_and_manifests_stay_so_and_are_read_by_all(readers):
    name = "gzipped"
    create(readers, name, "'format-version'='2', 'write.metadata.compression-codec'='gzip'")
    total = 0
    for codec in ("snappy", "zstd", "uncompressed", "gzip"):
        readers.java_sql(
            f"ALTER TABLE {{ns}}.{name} SET TBLPROPERTIES ('write.avro.compression-codec'='{codec}', "
            f"'write.manifest.compression-codec'='{codec}')"
        )
        insert(readers, name, total, total + 5)
        readers.load(name).append(rows(total + 5, total + 10))
        total += 10
        assert ids(readers.agree(name, but=["peer"])) == [*range(total)]  # it lacks snappy here
    table = readers.load(name)
    assert table.metadata_location.endswith(".gz.metadata.json")
    path = Path(table.metadata_location.removeprefix("file:"))
    assert gzip.decompress(path.read_bytes()).startswith(b"{")
    assert len(read_manifests(table.io, table.current_snapshot())) == 8


@pytest.fixture(scope="module", params=["true", "false"])
def hashed(request, readers):
    """A table laid out for object stores by Iceberg Java, and the shape of its paths."""
    name = f"object_{request.param}"
    create(
        readers,
        name,
        "'write.object-storage.enabled'='true', "
        f"'write.object-storage.partitioned-paths'='{request.param}'",
    )
    insert(readers, name, 0, 4)
    return name, {depth(path, name) for path in readers.plan(name)}


def test_the_layout_for_object_stores_is_kept(hashed, readers):
    name, shapes = hashed
    readers.load(name).append(rows(4, 8))
    assert {depth(path, name) for path in readers.plan(name)} == shapes
    assert ids(readers.agree(name)) == [*range(8)]


def test_the_layout_for_object_stores_is_kept_by_spark(hashed, readers):
    name, shapes = hashed
    readers.spark_sql(f"INSERT INTO {{ns}}.{name} VALUES (8, 'v8'), (9, 'v9')")
    assert {depth(path, name) for path in readers.plan(name)} == shapes


def depth(path, table):
    """How many folders below the data folder, and of what kind the first and last are."""
    *folders, _ = path.split(f"/{table}/data/")[1].split("/")
    return len(folders), set(folders[0]) <= {"0", "1"}, "=" in folders[-1]
