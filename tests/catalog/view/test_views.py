"""Views of a metastore: their life, their care, and Iceberg Java on the other side."""

from __future__ import annotations

import gzip
import json
import shlex
from collections import Counter
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest

from icecomb.catalog import cli, load_catalog
from icecomb.catalog.commit.commit_status import CommitState
from icecomb.catalog.unknown_commit import commit_status
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    CorruptFileError,
    IcecombError,
    NamespaceNotEmptyError,
    NoSuchFileError,
    NoSuchIcebergTableError,
    NoSuchIcebergViewError,
    NoSuchNamespaceError,
    NoSuchViewError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
    ViewAlreadyExistsError,
)

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
QUERIES = {"spark": "SELECT id, s FROM t", "trino": "select id, s from t"}


def document(location: str) -> dict[str, Any]:
    """A view's metadata file as it lies on disk."""
    raw = Path(location.removeprefix("file:")).read_bytes()
    return dict(json.loads(gzip.decompress(raw) if location.endswith(".gz.metadata.json") else raw))


@pytest.fixture
def view(catalog: Any, namespace: str) -> Any:
    return catalog.create_view(f"{namespace}.v", SCHEMA, QUERIES, properties={"comment": "words"})


@pytest.mark.parametrize("key", ["metadata_location", "previous_metadata_location", "table_type"])
def test_no_property_of_a_view_says_where_its_entry_points(catalog, namespace, view, key):
    before = catalog.client.table(namespace, "v")
    for attempt in (
        lambda: catalog.create_view(f"{namespace}.w", SCHEMA, QUERIES, properties={key: "x"}),
        lambda: catalog.replace_view(f"{namespace}.v", SCHEMA, QUERIES, properties={key: "x"}),
        lambda: view.update_properties({key: "x"}),
    ):
        with pytest.raises(ValidationError, match=f"Cannot set reserved properties: {key}"):
            attempt()
    assert catalog.client.table(namespace, "v") == before
    assert not catalog.view_exists(f"{namespace}.w")


def test_a_view_is_made_loaded_listed_renamed_and_dropped(catalog, namespace, view):
    loaded = catalog.load_view(f"{namespace.upper()}.V")
    assert loaded.metadata == view.metadata
    assert loaded.current_version().queries == QUERIES
    assert loaded.current_version().default_namespace == (namespace,)
    assert [field.name for field in loaded.schema().fields] == ["id", "s"]
    assert (loaded.sql_for("TRINO"), loaded.sql_for("hive")) == (QUERIES["trino"], QUERIES["spark"])
    assert catalog.list_views(namespace) == [(namespace, "v")]
    assert catalog.list_tables(namespace) == []
    assert catalog.view_exists((namespace, "v"))
    moved = catalog.rename_view((namespace, "v"), (namespace, "w"))
    assert (moved.name(), moved.metadata) == ((namespace, "w"), view.metadata)
    assert not catalog.view_exists((namespace, "v"))
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(namespace)
    catalog.drop_view((namespace, "w"))
    assert catalog.list_views(namespace) == []
    with pytest.raises(NoSuchViewError, match="There is no view"):
        view.refresh()
    assert Path(view.metadata_location.removeprefix("file:")).is_file()


def test_the_metadata_file_is_what_the_specification_says(view, namespace):
    assert view.metadata_location.startswith(f"{view.location()}/metadata/00000-")
    written = document(view.metadata_location)
    version = view.current_version()
    assert written == {
        "view-uuid": view.metadata.view_uuid,
        "format-version": 1,
        "location": view.location(),
        "properties": {"comment": "words"},
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [
                    {"id": 1, "name": "id", "required": False, "type": "long"},
                    {"id": 2, "name": "s", "required": False, "type": "string"},
                ],
            }
        ],
        "current-version-id": 1,
        "versions": [
            {
                "version-id": 1,
                "schema-id": 0,
                "timestamp-ms": version.timestamp_ms,
                "summary": {
                    "engine-name": "icecomb",
                    "engine-version": version.summary["engine-version"],
                },
                "default-namespace": [namespace],
                "representations": [
                    {"type": "sql", "sql": "SELECT id, s FROM t", "dialect": "spark"},
                    {"type": "sql", "sql": "select id, s from t", "dialect": "trino"},
                ],
            }
        ],
        "version-log": [{"timestamp-ms": version.timestamp_ms, "version-id": 1}],
    }


def test_a_replaced_view_keeps_identity_history_and_column_ids(catalog, namespace, view):
    other = pa.schema([("s", pa.string()), ("n", pa.int32())])
    queries = {"spark": "SELECT s, n FROM u", "trino": "select s, n from u"}
    new = catalog.replace_view((namespace, "v"), other, queries, properties={"k": "v"})
    assert new.metadata.view_uuid == view.metadata.view_uuid
    assert new.properties == {"comment": "words", "k": "v"}
    assert [(f.name, f.field_id) for f in new.schema().fields] == [("s", 2), ("n", 3)]
    assert [version.version_id for version in new.versions()] == [1, 2]
    assert [entry.version_id for entry in new.history()] == [1, 2]
    again = catalog.create_or_replace_view((namespace, "v"), SCHEMA, QUERIES)
    assert again.current_version() == view.current_version(), (
        "a version that was there is used again"
    )
    assert [entry.version_id for entry in again.history()] == [1, 2, 1]
    made = catalog.create_or_replace_view((namespace, "w"), SCHEMA, QUERIES)
    assert made.current_version().version_id == 1


def test_a_dialect_is_not_lost_by_accident(catalog, namespace, view):
    with pytest.raises(ValidationError, match="lose its query in trino"):
        catalog.replace_view((namespace, "v"), SCHEMA, {"spark": "SELECT 1"})
    assert view.refresh().current_version().queries == QUERIES
    view.update_properties({"replace.drop-dialect.allowed": "true"})
    catalog.replace_view((namespace, "v"), SCHEMA, {"spark": "SELECT 1"})
    assert view.refresh().current_version().queries == {"spark": "SELECT 1"}


def test_only_so_many_versions_are_kept(catalog, namespace, view):
    view.update_properties({"version.history.num-entries": "2"})
    for number in range(3):
        queries = {name: f"{sql} WHERE id > {number}" for name, sql in QUERIES.items()}
        catalog.replace_view((namespace, "v"), SCHEMA, queries)
    view.refresh()
    assert [version.version_id for version in view.versions()] == [3, 4]
    assert [entry.version_id for entry in view.history()] == [3, 4]


def test_properties_are_set_and_removed_also_in_the_entry(catalog, namespace, view):
    entry = catalog.client.table(namespace, "v")
    assert entry.parameters["comment"] == "words"
    view.update_properties({"k": "v"}, removals=["comment"])
    assert catalog.load_view((namespace, "v")).properties == {"k": "v"}
    after = catalog.client.table(namespace, "v")
    assert "comment" not in after.parameters
    assert after.parameters["previous_metadata_location"] == entry.metadata_location
    before = view.metadata_location
    view.update_properties({"k": "v"})
    assert view.metadata_location == before, "what is so already is not committed"


@pytest.mark.full("needs Iceberg's Spark")
def test_the_entry_is_what_iceberg_java_writes(catalog, iceberg_java, namespace):
    """Expected: the entry of the same view made by Iceberg Java."""
    iceberg_java.sql(f"CREATE TABLE ice.{namespace}.t (id BIGINT, s STRING) USING iceberg")
    iceberg_java.sql(
        f"CREATE VIEW ice.{namespace}.theirs TBLPROPERTIES ('a'='b') AS SELECT id, s FROM ice.{namespace}.t"
    )
    theirs = catalog.client.table(namespace, "theirs")
    catalog.create_table((namespace, "our_t"), catalog.load_table((namespace, "t")).schema())
    tables = [catalog.client.table(namespace, name).storage.columns for name in ("our_t", "t")]
    assert tables[0] == tables[1]
    loaded = catalog.load_view((namespace, "theirs"))
    catalog.create_view(
        (namespace, "ours"),
        loaded.schema(),
        loaded.current_version().queries,
        properties=dict(loaded.properties),
    )
    ours = catalog.client.table(namespace, "ours")
    own = {"metadata_location", "uuid", "transient_lastDdlTime", "current-schema"}
    assert {k: v for k, v in ours.parameters.items() if k not in own} == {
        k: v for k, v in theirs.parameters.items() if k not in own
    }
    columns = [json.loads(one.parameters["current-schema"])["fields"] for one in (ours, theirs)]
    told = [[(one["name"], one["type"], one["required"]) for one in side] for side in columns]
    assert told[0] == told[1]
    for name in (
        "table_type",
        "view_original_text",
        "view_expanded_text",
        "retention",
        "partition_keys",
        "owner",
    ):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert (
        ours.storage.columns,
        ours.storage.input_format,
        ours.storage.output_format,
        ours.storage.serde,
    ) == (
        theirs.storage.columns,
        theirs.storage.input_format,
        theirs.storage.output_format,
        theirs.storage.serde,
    )


@pytest.mark.full("needs Iceberg's Spark")
def test_iceberg_java_and_we_read_and_change_each_others_views(catalog, iceberg_java, namespace):
    sql = iceberg_java.sql
    sql(f"CREATE TABLE ice.{namespace}.t (id BIGINT, s STRING) USING iceberg")
    sql(f"INSERT INTO ice.{namespace}.t VALUES (1, 'a'), (2, 'b')")
    sql(
        f"CREATE VIEW ice.{namespace}.theirs COMMENT 'their words' AS SELECT id FROM ice.{namespace}.t WHERE s = 'b'"
    )

    theirs = catalog.load_view((namespace, "theirs"))
    assert theirs.properties["comment"] == "their words"
    assert theirs.sql_for("spark") == f"SELECT id FROM ice.{namespace}.t WHERE s = 'b'"
    assert document(theirs.metadata_location)["view-uuid"] == theirs.metadata.view_uuid
    catalog.replace_view(
        theirs.name(),
        pa.schema([("id", pa.int64())]),
        {"spark": f"SELECT id FROM ice.{namespace}.t WHERE s = 'a'"},
        default_catalog="ice",
        properties={"spark.query-column-names": "id"},
    )
    assert sql(f"SELECT * FROM ice.{namespace}.theirs") == [[1]]

    properties = {"spark.query-column-names": "id,s", "comment": "ours"}
    catalog.create_view(
        (namespace, "ours"), SCHEMA, QUERIES, default_catalog="ice", properties=properties
    )
    assert sorted(sql(f"SELECT * FROM ice.{namespace}.ours")) == [[1, "a"], [2, "b"]]
    shown = sql(f"SHOW VIEWS IN ice.{namespace}")
    # temporary views that other tests left in the session are shown with every namespace
    assert sorted(row[1] for row in shown if not row[2]) == ["ours", "theirs"]
    sql(f"ALTER VIEW ice.{namespace}.ours SET TBLPROPERTIES ('k'='v')")
    assert catalog.load_view((namespace, "ours")).properties["k"] == "v"
    sql(f"ALTER VIEW ice.{namespace}.ours RENAME TO ice.{namespace}.moved")
    assert catalog.list_views(namespace) == [(namespace, "moved"), (namespace, "theirs")]
    sql(f"DROP VIEW ice.{namespace}.moved")
    assert not catalog.view_exists((namespace, "moved"))


def test_a_name_is_taken_by_tables_and_views_alike(catalog, namespace, view, table):
    with pytest.raises(ViewAlreadyExistsError, match="it is an Iceberg view"):
        catalog.create_view((namespace, "v"), SCHEMA, QUERIES)
    with pytest.raises(ViewAlreadyExistsError, match="it is an Iceberg view"):
        catalog.create_table((namespace, "v"), SCHEMA)
    with pytest.raises(TableAlreadyExistsError, match="it is an Iceberg table"):
        catalog.create_view((namespace, "t"), SCHEMA, QUERIES)
    for act, names in ((catalog.rename_view, ("v", "t")), (catalog.rename_table, ("t", "v"))):
        with pytest.raises(TableAlreadyExistsError):
            act((namespace, names[0]), (namespace, names[1]))
    assert view.refresh().current_version().queries == QUERIES


def test_a_view_asked_where_a_table_is_and_the_reverse_are_named(catalog, namespace, view, table):
    before = catalog.client.table(namespace, "v"), catalog.client.table(namespace, "t")
    for act in (
        lambda: catalog.load_table((namespace, "v")),
        lambda: catalog.drop_table((namespace, "v")),
        lambda: catalog.drop_table((namespace, "v"), purge_requested=True),
        lambda: catalog.rename_table((namespace, "v"), (namespace, "x")),
        lambda: catalog.create_or_replace_table((namespace, "v"), SCHEMA),
    ):
        with pytest.raises(NoSuchIcebergTableError, match="it is an Iceberg view"):
            act()
    for act in (
        lambda: catalog.load_view((namespace, "t")),
        lambda: catalog.drop_view((namespace, "t")),
        lambda: catalog.rename_view((namespace, "t"), (namespace, "x")),
        lambda: catalog.replace_view((namespace, "t"), SCHEMA, QUERIES),
    ):
        with pytest.raises(NoSuchIcebergViewError, match="it is an Iceberg table"):
            act()
    assert not catalog.view_exists((namespace, "t"))
    assert not catalog.table_exists((namespace, "v"))
    assert before == (catalog.client.table(namespace, "v"), catalog.client.table(namespace, "t"))


@pytest.mark.parametrize(
    "name", ["default.missing", "nowhere.v", "justone", "a.b.c", "default.tä'\"b"]
)
def test_a_missing_view_is_named(catalog, name):
    for act in (
        catalog.load_view,
        catalog.drop_view,
        lambda n: catalog.rename_view(n, "default.x"),
    ):
        with pytest.raises(NoSuchViewError, match="There is no view"):
            act(name)


def test_bad_definitions_are_refused_before_anything_is_written(catalog, namespace):
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_view("nowhere.v", SCHEMA, QUERIES)
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_views("nowhere")
    for queries in ({}, {"spark": " "}, {"spark": "SELECT 1", "Spark": "SELECT 2"}):
        with pytest.raises(ValidationError):
            catalog.create_view((namespace, "bad"), SCHEMA, queries)
    for properties in (
        {"version.history.num-entries": "x"},
        {"write.metadata.compression-codec": "brotli"},
    ):
        with pytest.raises(ValidationError):
            catalog.create_view((namespace, "bad"), SCHEMA, QUERIES, properties=properties)
    assert not catalog.view_exists((namespace, "bad"))
    folder = Path(catalog.load_namespace_properties(namespace)["location"].removeprefix("file:"))
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_a_change_that_would_be_none_on_an_old_state_is_made_on_the_newest(catalog, view):
    view.update_properties({"owner-team": "a"})
    other = catalog.load_view(view.name())
    other.update_properties({"owner-team": "b"})
    view.update_properties({"owner-team": "a"})
    assert catalog.load_view(view.name()).properties["owner-team"] == "a"


def test_a_change_is_never_made_to_a_new_view_of_the_same_name(catalog, view):
    catalog.drop_view(view.name())
    catalog.create_view(view.name(), SCHEMA, {"spark": "SELECT 1 AS id, '' AS s"})
    with pytest.raises(CommitFailedError, match="a new view has its name") as failed:
        view.update_properties({"a": "b"})
    assert (
        failed.value.hint == "Load the view again and repeat the change, if the new one is meant."
    )
    assert "a" not in catalog.load_view(view.name()).properties


def test_changes_at_once_all_happen(metastore, catalog, namespace, view):
    """Four threads in pairs on two catalogs; the queue of one catalog does not serve the other."""
    other = load_catalog("other", uri=metastore.uri, warehouse=str(metastore.warehouse))
    failures: list[BaseException] = []

    def change(lake: Any, name: str) -> None:
        try:
            mine = lake.load_view((namespace, "v"))
            for number in range(3):
                mine.update_properties({f"{name}{number}": "x"})
        except BaseException as error:  # noqa: BLE001 - the test shows it
            failures.append(error)

    threads = [
        Thread(target=change, args=(lake, name))
        for name, lake in zip("abcd", (catalog, other) * 2, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert failures == []
    found = Counter(key[0] for key in view.refresh().properties if key != "comment")
    assert found == dict.fromkeys("abcd", 3)


def test_what_became_of_a_change_is_told_from_the_view(
    metastore, catalog, proxied, proxy, namespace, view, capfd
):
    first = view.metadata_location
    mine = proxied.load_view((namespace, "v"))
    mine.update_properties({"commit.status-check.num-retries": "0"})
    for spelled in ("/metadata/", "//metadata/"):
        file = mine.metadata_location.replace("/metadata/", spelled)
        assert commit_status(catalog, (namespace, "v"), file).state is CommitState.COMMITTED
        file = first.replace("/metadata/", spelled)
        assert commit_status(catalog, (namespace, "v"), file).state is CommitState.SUPERSEDED
    proxy.fail("alter_table_with_environment_context", "request")
    queries = {name: f"{sql} WHERE id = 1" for name, sql in QUERIES.items()}
    with pytest.raises(CommitStateUnknownError) as error:
        proxied.replace_view((namespace, "v"), SCHEMA, queries)
    _, _, command = error.value.hint.partition(": icecomb ")
    file = shlex.split(command)[-1]
    assert commit_status(catalog, (namespace, "v"), file).state is CommitState.PENDING
    assert cli.main(["--uri", metastore.uri, *shlex.split(command)]) == 4
    other = {name: f"{sql} WHERE id = 2" for name, sql in QUERIES.items()}
    catalog.replace_view((namespace, "v"), SCHEMA, other)
    assert cli.main(["--uri", metastore.uri, *shlex.split(command), "--yes"]) == 0
    assert "not committed" in capfd.readouterr().out
    assert not Path(file.removeprefix("file:")).exists()
    assert view.refresh().current_version().queries == other


@pytest.mark.parametrize("loss", ["request", "reply"])
def test_a_lost_answer_is_settled_by_looking(catalog, proxied, proxy, namespace, view, loss):
    mine = proxied.load_view((namespace, "v"))
    mine.update_properties(
        {"commit.status-check.num-retries": "1", "commit.status-check.min-wait-ms": "10"}
    )
    proxy.fail("alter_table_with_environment_context", loss)
    files = {path.name for path in Path(view.location().removeprefix("file:")).rglob("*.json")}
    if loss == "reply":
        mine.update_properties({"k": "v"})
    else:
        with pytest.raises(CommitStateUnknownError, match="icecomb commit settle"):
            mine.update_properties({"k": "v"})
    now = {path.name for path in Path(view.location().removeprefix("file:")).rglob("*.json")}
    assert len(now - files) == 1, "a file whose status is unknown is kept"
    assert ("k" in view.refresh().properties) == (loss == "reply")


def test_a_view_whose_metadata_is_lost_or_broken_is_named_and_can_be_dropped(
    catalog, namespace, view
):
    path = Path(view.metadata_location.removeprefix("file:"))
    path.write_bytes(gzip.compress(b'{"format-version":1}'))
    with pytest.raises(CorruptFileError, match="'view-uuid'"):
        catalog.load_view((namespace, "v"))
    path.write_bytes(gzip.compress(b'{"format-version":2}'))
    with pytest.raises(UnsupportedError, match="view format version 2"):
        catalog.load_view((namespace, "v"))
    path.unlink()
    with pytest.raises(NoSuchFileError):
        catalog.load_view((namespace, "v"))
    assert catalog.view_exists((namespace, "v"))
    catalog.drop_view((namespace, "v"))
    assert catalog.list_views(namespace) == []


def test_folders_of_tables_have_no_view_and_none_can_be_made(tmp_path):
    files = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    files.create_namespace("a")
    assert files.list_views("a") == []
    assert not files.view_exists("a.v")
    with pytest.raises(NoSuchNamespaceError):
        files.list_views("b")
    for act in (
        lambda: files.load_view("a.v"),
        lambda: files.replace_view("a.v", SCHEMA, QUERIES),
        lambda: files.rename_view("a.v", "a.w"),
        lambda: files.drop_view("a.v"),
        lambda: files.view_commit_status("a.v", "file:/x.json"),
    ):
        with pytest.raises(NoSuchViewError, match=r"no view a\.v: catalog files keeps none"):
            act()
    for create in (files.create_view, files.create_or_replace_view):
        with pytest.raises(UnsupportedError, match="Catalog files keeps no views: only a metast"):
            create("a.v", SCHEMA, QUERIES)


HOSTILE = {
    "None": None,
    "True": True,
    "five": 5,
    "float": 1.5,
    "NaN": float("nan"),
    "text": "x",
    "half a character": "\ud800",
    "bytes": b"x",
    "list": [1],
    "dict": {"a": 1},
    "object": object(),
}
VIEW_ENTRIES = {
    "default_catalog": lambda c, n, v: c.create_view(n, SCHEMA, QUERIES, default_catalog=v),
    "default_namespace": lambda c, n, v: c.create_view(n, SCHEMA, QUERIES, default_namespace=v),
    "part of it": lambda c, n, v: c.create_view(n, SCHEMA, QUERIES, default_namespace=[v]),
    "queries": lambda c, n, v: c.create_view(n, SCHEMA, v),
    "a query": lambda c, n, v: c.create_view(n, SCHEMA, {"spark": v}),
    "a dialect": lambda c, n, v: c.create_view(n, SCHEMA, {v if v != [1] else 5: "SELECT 1"}),
    "schema": lambda c, n, v: c.create_view(n, v, QUERIES),
    "location": lambda c, n, v: c.create_view(n, SCHEMA, QUERIES, location=v),
    "properties": lambda c, n, v: c.create_view(n, SCHEMA, QUERIES, properties=v),
    "a property": lambda c, n, v: c.create_view(n, SCHEMA, QUERIES, properties={"k": v}),
    "replacement": lambda c, n, v: (
        c.create_view(n, SCHEMA, QUERIES),
        c.replace_view(n, SCHEMA, QUERIES, default_catalog=v, properties={"k": v}),
    ),
    "update_properties": lambda c, n, v: c.create_view(n, SCHEMA, QUERIES).update_properties(
        {"k": v}
    ),
    "removal": lambda c, n, v: c.create_view(
        n, SCHEMA, QUERIES, properties={"k": "1"}
    ).update_properties(removals=v),
}


@pytest.mark.parametrize("entry", VIEW_ENTRIES)
@pytest.mark.parametrize(
    "every", [3, pytest.param(1, marks=pytest.mark.full("all values, not a third by turns"))]
)
def test_a_value_of_a_wrong_type_never_makes_a_view_that_nobody_can_load(
    catalog, namespace, entry, every
):
    name = f"{namespace}.hostile"
    turn = [*VIEW_ENTRIES].index(entry) % every
    for what, value in [*HOSTILE.items()][turn::every]:
        if what == "dict" and entry == "a dialect":
            continue  # no key of a dictionary
        try:
            VIEW_ENTRIES[entry](catalog, name, value)
        except IcecombError:
            pass
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            pytest.fail(f"{what}: {error!r}")
        if catalog.view_exists(name):
            loaded = catalog.load_view(name)
            found = document(loaded.metadata_location)
            for key in ("properties", "summary"):
                texts = found[key] if key == "properties" else found["versions"][-1][key]
                assert all(type(text) is str for text in texts.values()), what
            version = found["versions"][-1]
            assert type(version.get("default-catalog", "")) is str
            assert all(type(part) is str for part in version["default-namespace"])
            assert all(
                type(r["sql"]) is type(r["dialect"]) is str for r in version["representations"]
            )
            catalog.drop_view(name)
