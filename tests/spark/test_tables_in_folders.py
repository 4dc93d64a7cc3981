"""Tables that Spark makes, changes and drops by their folder, as Iceberg's runtime does with HadoopTables."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pytest

from icecomb.catalog import open_table
from tests.peers.spark_worker import plain
from tests.rings import sampled


@pytest.fixture(params=sampled(["ours", "3.5"], keep=1))
def run(request):
    if request.param != "ours":
        return request.getfixturevalue("other_spark")(request.param).sql
    session = request.getfixturevalue("spark")
    return lambda text: [[plain(each) for each in row] for row in session.sql(text).collect()]


@pytest.fixture
def namespace(metastore):
    """A folder of the warehouse of Iceberg Java's catalog `ice_hadoop`, where it is a namespace."""
    folder = Path(metastore.warehouse) / "hadoop" / f"folders_{uuid.uuid4().hex}"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def rows_of(place):
    found = open_table(str(place)).scan().to_arrow()
    return sorted(found["id"].to_pylist())


def test_a_table_is_made_changed_and_dropped_by_its_folder(run, iceberg_java, namespace):
    place = namespace / "t"
    name, theirs = f"lake.`{place}`", f"ice_hadoop.{namespace.name}.t"
    run(
        f"CREATE TABLE {name} (id BIGINT NOT NULL COMMENT 'the key', k STRING) USING iceberg "
        "PARTITIONED BY (bucket(4, id)) TBLPROPERTIES ('a'='b')"
    )
    run(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    iceberg_java.sql(f"INSERT INTO {theirs} VALUES (3, 'c')")
    assert run(f"SELECT id, k FROM {name} ORDER BY id") == [[1, "a"], [2, "b"], [3, "c"]]
    run(f"ALTER TABLE {name} ADD COLUMN n INT")
    run(f"ALTER TABLE {name} SET TBLPROPERTIES ('a'='c')")
    run(f"DELETE FROM {name} WHERE id = 2")
    query = "SELECT id, k, n FROM %s ORDER BY id"
    assert run(query % name) == iceberg_java.sql(query % theirs) == [[1, "a", None], [3, "c", None]]
    table = open_table(str(place))
    assert table.properties["a"] == "c"
    assert [(f.name, str(f.transform)) for f in table.spec().fields] == [("id_bucket", "bucket[4]")]
    # one version after the other, and the hint says the last
    hint = int((place / "metadata/version-hint.text").read_text())
    versions = sorted((place / "metadata").glob("v*.metadata.json"))
    assert len(versions) == hint == 6
    with pytest.raises(Exception, match="exists"):
        run(f"CREATE TABLE {name} (other INT) USING iceberg")
    run(f"CREATE TABLE IF NOT EXISTS {name} (other INT) USING iceberg")
    with pytest.raises(Exception, match="cannot be renamed"):
        run(f"ALTER TABLE {name} RENAME TO lake.default.elsewhere")
    with pytest.raises(Exception, match=r"PURGE|purge"):
        run(f"DROP TABLE {name}")
    assert rows_of(place) == [1, 3]
    run(f"DROP TABLE {name} PURGE")
    assert not place.exists()


def test_create_and_replace_as_select_are_one_commit_and_leave_nothing_when_they_fail(
    run, iceberg_java, namespace
):
    place = namespace / "t"
    name = f"lake.`{place}`"
    run(f"CREATE TABLE {name} USING iceberg AS SELECT id FROM range(3)")
    assert rows_of(place) == [0, 1, 2]
    run(f"CREATE OR REPLACE TABLE {name} USING iceberg AS SELECT id + 10 AS id FROM range(2)")
    assert rows_of(place) == [10, 11]
    assert iceberg_java.sql(f"SELECT id FROM ice_hadoop.{namespace.name}.t ORDER BY id") == [
        [10],
        [11],
    ]
    failing = "SELECT id, CAST(raise_error('that was all') AS INT) AS e FROM range(3)"
    with pytest.raises(Exception, match="that was all"):
        run(f"REPLACE TABLE {name} USING iceberg AS {failing}")
    assert rows_of(place) == [10, 11]
    other = namespace / "other"
    with pytest.raises(Exception, match="that was all"):
        run(f"CREATE TABLE lake.`{other}` USING iceberg AS {failing}")
    assert not [each for each in other.rglob("*") if each.is_file()]
    run(f"CREATE TABLE lake.`{other}` LIKE {name}")
    assert rows_of(other) == []


@pytest.mark.full("the catalog's rule is tested plainly")
def test_folders_of_others_are_not_taken(run, catalog, tmp_path, metastore):
    full = tmp_path / "full"
    full.mkdir()
    (full / "rows.csv").write_text("1")
    (full / "below").mkdir()
    (tmp_path / "file").write_text("1")
    run("CREATE NAMESPACE lake.in_folders")
    run("CREATE TABLE lake.in_folders.served (id BIGINT) USING iceberg")
    served = catalog.load_table("in_folders.served").metadata
    place = served.location.removeprefix("file://").removeprefix("file:")
    wrong = {
        str(full): "exists",
        str(tmp_path / "file"): "exists",
        place: "server|exists",
        f"{place}/metadata/{Path(catalog.load_table('in_folders.served').metadata_location).name}": (
            "cannot be the folder|exists"
        ),
        f"{tmp_path}/a:b": ":",
    }
    for folder, said in wrong.items():
        with pytest.raises(Exception, match=said):
            run(f"CREATE TABLE lake.`{folder}` (id BIGINT) USING iceberg")
    with pytest.raises(Exception, match="location"):
        run(
            f"CREATE TABLE lake.`{tmp_path}/t` (id BIGINT) USING iceberg LOCATION '{tmp_path}/other'"
        )
    for folder in (full, place):
        with pytest.raises(Exception, match=r"."):
            run(f"DROP TABLE lake.`{folder}` PURGE")
    assert (full / "rows.csv").read_text() == "1"
    assert catalog.load_table("in_folders.served").metadata.table_uuid == served.table_uuid
    with pytest.raises(Exception, match=r"no view can be there|folder"):
        run(f"CREATE VIEW lake.`{tmp_path}/v` AS SELECT 1 AS one")
    run("DROP TABLE lake.in_folders.served")
    run("DROP NAMESPACE lake.in_folders")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "full"]
