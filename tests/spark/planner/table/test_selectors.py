"""What is meant of a table: below its name, by VERSION AS OF, by read options; and its metadata tables."""

from __future__ import annotations

import base64
import uuid
import zlib

import pyarrow as pa
import pytest

from icecomb.format.errors import (
    ConfigurationError,
    IcecombError,
    NoSuchSnapshotError,
    NoSuchTableError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.inspect.inspection import NAMES, TIME_TRAVELLING
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import FixedType, LongType, NestedField, StringType, UUIDType
from icecomb.spark.planner.scan.metadata_rows import _for_spark
from tests.spark.planner.protocol import NAMESPACE, NO_AUDIT, named

COLUMNS = (NestedField(1, "id", LongType()), NestedField(2, "s", StringType()))


class Story:
    """A table with three appends, one of them on a branch, whose column was renamed at last."""

    def __init__(self, catalog, name):
        self.name = name
        self.table = catalog.create_table((*NAMESPACE, name), Schema(COLUMNS))
        self.first = self._append(1)
        with self.table.manage_snapshots() as manage:
            manage.create_branch(self.first, "side").create_tag(self.first, "kept")
        self.second = self._append(2)
        self.aside = self._append(3, branch="side")
        with self.table.update_schema() as update:
            update.rename_column("s", "z")
        self.table.refresh()

    def _append(self, number, **where):
        self.table.append(pa.table({"id": [number], "s": [f"v{number}"]}), **where)
        self.table.refresh()
        return self.table.refs()[where.get("branch", "main")].snapshot_id


@pytest.fixture(scope="module")
def story(catalog):
    return Story(catalog, "story")


def below(story, selector):
    return {"namespace": [*NAMESPACE, story.name], "name": selector}


def load(planner, table, **more):
    return planner.ask("load_table", catalog=planner.catalog, table=table, **more)


def rows(planner, loaded, *filters, **options):
    """How many rows a query reads; each file has one."""
    return planner.plan(loaded, *filters, **options)["statistics"]["rows"]


def column_names(loaded):
    return [field["name"] for field in loaded["schema"]["fields"]]


def test_a_name_below_the_table_s_stands_for_one_of_its_states(planner, story):
    log = {entry.snapshot_id: entry.timestamp_ms for entry in story.table.metadata.snapshot_log}
    states = {
        "branch_side": (2, ["id", "z"]),
        "branch_main": (2, ["id", "z"]),
        "tag_kept": (1, ["id", "s"]),
        f"snapshot_id_{story.second}": (2, ["id", "s"]),
        f"snapshot_id_{story.first}": (1, ["id", "s"]),
        f"at_timestamp_{log[story.first]}": (1, ["id", "s"]),
    }
    for selector, (count, columns) in states.items():
        loaded = load(planner, below(story, selector))
        assert (rows(planner, loaded), column_names(loaded)) == (count, columns), selector
        assert loaded["has_files"]


@pytest.mark.parametrize(
    ("selector", "error"),
    [
        ("branch_none", NoSuchSnapshotError),
        ("tag_none", NoSuchSnapshotError),
        ("snapshot_id_77", NoSuchSnapshotError),
        ("at_timestamp_77", NoSuchSnapshotError),
        # as in Iceberg Java these are written in small letters, metadata tables are not
        ("BRANCH_side", NoSuchTableError),
        ("at_timestamp_now", NoSuchTableError),
        ("snapshot_id_-1", NoSuchTableError),
        ("branch_", NoSuchTableError),
        ("none", NoSuchTableError),
    ],
)
def test_a_name_below_the_table_s_that_stands_for_nothing_is_refused(
    planner, story, selector, error
):
    table = below(story, selector)
    with pytest.raises(error, match="story"):
        load(planner, table)
    assert planner.ask("table_exists", catalog=planner.catalog, table=table) == {"exists": False}


def test_what_is_below_a_table_cannot_be_made_altered_or_dropped(planner, story):
    table = below(story, "branch_side")
    assert planner.ask("table_exists", catalog=planner.catalog, table=table) == {"exists": True}
    for method, more in (
        ("drop_table", {"purge": False}),
        ("alter_table", {"changes": []}),
        ("rename_table", {"target": named("other")}),
    ):
        with pytest.raises(UnsupportedError, match=r"something of table planner_tests[.]story"):
            planner.ask(method, catalog=planner.catalog, table=table, **more)
    assert story.table.refresh().refs().keys() == {"main", "side", "kept"}


def test_a_name_that_says_the_state_does_not_go_with_another_way_to_say_it(planner, story):
    for selector in ("branch_side", "tag_kept"):
        for more in ({"version": str(story.first)}, {"timestamp_us": 1 << 60}):
            with pytest.raises(ValidationError, match="already says which"):
                load(planner, below(story, selector), **more)


def begin(planner, loaded, operation="append", audit=NO_AUDIT, command=None, **options):
    return planner.ask(
        "begin_write",
        reference=loaded["reference"],
        operation=operation,
        command=command,
        options=options,
        audit=audit,
    )["write"]


def test_a_branch_is_written_to_by_its_name_or_by_an_option(planner, story):
    by_name = load(planner, below(story, "branch_side"))
    plain = planner.load(story.name)
    for write in (begin(planner, by_name), begin(planner, plain, Branch="side")):
        assert (write["branch"], write["snapshot_id"]) == ("side", story.aside)
    assert begin(planner, by_name, branch="side")["branch"] == "side"
    assert begin(planner, plain, branch="new")["snapshot_id"] == story.second
    with pytest.raises(ValidationError, match="'side' and option branch 'main' are in conflict"):
        begin(planner, by_name, branch="main")
    for operation in ("replace_files", "append"):
        with pytest.raises(UnsupportedError, match="MERGE cannot change a branch that an option"):
            begin(planner, plain, operation, command="merge", branch="side")
    for selector in ("tag_kept", f"snapshot_id_{story.first}"):
        loaded = load(planner, below(story, selector))
        for operation in ("append", "replace_files", "overwrite"):
            with pytest.raises(ValidationError, match=r"A version of table .* cannot be written"):
                begin(planner, loaded, operation)
        with pytest.raises(ValidationError, match=r"A version of table .* cannot be changed"):
            planner.ask("delete_where", reference=loaded["reference"], filters=[])
    with pytest.raises(NoSuchSnapshotError):
        begin(planner, load(planner, below(story, "branch_none")))


def test_rows_of_a_branch_are_deleted_by_its_name(planner, catalog):
    own = Story(catalog, "deleted")
    loaded = load(planner, below(own, "branch_side"))
    equal = {"op": "eq", "column": ["id"], "type": "long", "value": 1}
    planner.ask("delete_where", reference=loaded["reference"], filters=[equal])
    own.table.refresh()
    assert own.table.scan().use_ref("side").to_arrow()["id"].to_pylist() == [3]
    assert sorted(own.table.scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_read_options_choose_the_state_and_filters_mean_the_columns_that_the_query_named(
    planner, story
):
    plain = planner.load(story.name)
    log = {entry.snapshot_id: entry.timestamp_ms for entry in story.table.metadata.snapshot_log}
    renamed = {"op": "eq", "column": ["z"], "type": "string", "value": "v1"}
    other = renamed | {"value": "v2"}
    for options in (
        {"snapshot-id": str(story.first)},
        {"As-Of-Timestamp": str(log[story.first])},
        {"tag": "kept"},
    ):
        assert rows(planner, plain, **options) == 1
        assert rows(planner, plain, renamed, **options) == 1
        assert rows(planner, plain, other, **options) == 0
    assert rows(planner, plain, branch="side") == 2
    assert rows(planner, plain, other, branch="side") == 0
    appended = {"start-snapshot-id": str(story.first)}
    assert rows(planner, plain, **appended) == 1
    assert rows(planner, plain, renamed, **appended) == 0
    assert rows(planner, plain, other, **appended) == 1
    assert rows(planner, plain, **appended, **{"end-snapshot-id": str(story.aside)}) == 1
    same = {"snapshot-id": str(story.first)}
    assert rows(planner, load(planner, below(story, "tag_kept")), **same) == 1
    assert rows(planner, load(planner, below(story, "branch_side")), branch="side") == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("snapshot-id", "as-of-timestamp"), "only one of the options"),
        (("branch", "tag"), "only one of the options"),
        (("snapshot-id", "start-snapshot-id"), "only one of the options"),
        (("branch", "start-snapshot-id"), "only one of the options"),
        (("end-snapshot-id",), "Cannot set only end-snapshot-id"),
        (("start-timestamp",), "are for changelogs"),
        (("start-snapshot-id", "END-TIMESTAMP"), "are for changelogs"),
    ],
)
def test_options_that_contradict_each_other_are_refused(planner, story, options, message):
    with pytest.raises(ValidationError, match=message):
        planner.plan(planner.load(story.name), **dict.fromkeys(options, str(story.first)))


@pytest.mark.parametrize("selector", ["tag_kept", "branch_side", "files"])
def test_options_that_contradict_the_name_of_the_table_are_refused(planner, story, selector):
    loaded = load(planner, below(story, selector))
    appended = {"start-snapshot-id": str(story.first)}
    if selector == "files":
        with pytest.raises(ValidationError, match="Incremental append scan is not supported"):
            read_rows(planner, loaded, options=appended)
        return
    for options in (appended, {"branch": "main"}, {"snapshot-id": str(story.second)}):
        with pytest.raises(ValidationError, match="contradicts the name"):
            planner.plan(loaded, **options)


def test_options_may_say_again_what_the_name_of_the_table_says(planner, story):
    kept, side = (load(planner, below(story, name)) for name in ("tag_kept", "branch_side"))
    for loaded, options in (
        (kept, {"tag": "kept"}),
        (kept, {"snapshot-id": str(story.first)}),
        (side, {"branch": "side"}),
    ):
        assert planner.plan(loaded, **options)["files"] == planner.plan(loaded)["files"]


def test_options_that_are_no_numbers_or_name_nothing_are_refused(planner, story):
    plain = planner.load(story.name)
    for option in ("snapshot-id", "as-of-timestamp", "start-snapshot-id", "batch-size"):
        with pytest.raises(ConfigurationError, match="cannot be 'x'"):
            planner.plan(plain, **{option: "x"})
    for option, value in (
        ("snapshot-id", "77"),
        ("as-of-timestamp", "77"),
        ("branch", "none"),
        ("start-snapshot-id", "77"),
    ):
        with pytest.raises(IcecombError, match="story"):
            planner.plan(plain, **{option: value})
    with pytest.raises(ConfigurationError, match="vectorization-enabled cannot be 'x'"):
        planner.plan(plain, **{"vectorization-enabled": "x"})


def test_rows_are_not_replaced_by_what_options_read(planner, story):
    with pytest.raises(UnsupportedError, match="cannot read others by read options"):
        planner.plan(planner.load(story.name), changes="files", branch="side")


def test_options_of_streams_and_unknown_ones_say_nothing_to_a_query(planner, story):
    options = {"streaming-max-files-per-micro-batch": "x", "stream-from-timestamp": "y", "no": "z"}
    assert rows(planner, planner.load(story.name), **options) == 2


def test_how_rows_are_handed_on_is_said_by_option_setting_or_table(planner, story):
    plain = planner.load(story.name)
    plan = planner.plan(plain)
    assert (plan["vectorized"], plan["batch_rows"]) == (True, None)
    plan = planner.plan(plain, **{"batch-size": "7", "vectorization-enabled": "false"})
    assert (plan["vectorized"], plan["batch_rows"]) == (False, 7)
    off = {"spark.sql.iceberg.vectorization.enabled": "false"}
    assert not planner.plan(plain, settings=off)["vectorized"]
    assert planner.plan(plain, settings=off, **{"vectorization-enabled": "true"})["vectorized"]
    with story.table.update_properties() as update:
        update.set("read.parquet.vectorization.enabled", "false")
        update.set("read.parquet.vectorization.batch-size", "9")
    plain = planner.load(story.name)
    plan = planner.plan(plain)
    assert (plan["vectorized"], plan["batch_rows"]) == (False, 9)
    on = {"spark.sql.iceberg.vectorization.enabled": "true"}
    assert planner.plan(plain, settings=on)["vectorized"]


def read_rows(planner, loaded, *filters, columns=None, limit=None, options=None):
    ids = [
        field["metadata"]["parquet.field.id"]
        for field in loaded["schema"]["fields"]
        if columns is None or field["name"] in columns
    ]
    answer = planner.ask(
        "read_rows",
        reference=loaded["reference"],
        field_ids=ids,
        filters=list(filters),
        case_sensitive=False,
        limit=limit,
        options=options or {},
    )
    parts = [
        pa.ipc.open_stream(zlib.decompress(base64.b64decode(stream))).read_all()
        for stream in answer["streams"]
    ]
    return pa.concat_tables(parts) if parts else None


@pytest.mark.parametrize("name", NAMES)
def test_metadata_tables_have_the_rows_that_python_shows(planner, story, name):
    loaded = load(planner, below(story, name.upper()))
    assert not loaded["has_files"]
    assert loaded["partitioning"] == []
    expected = getattr(story.table.refresh().inspect, name)()
    found = read_rows(planner, loaded)
    assert (found.to_pylist() if found else []) == expected.to_pylist()
    assert column_names(loaded) == expected.column_names
    if expected.num_rows:
        assert read_rows(planner, loaded, limit=1).num_rows == 1
        first = expected.column_names[1]
        assert read_rows(planner, loaded, columns=[first]).column_names == [first]
        # whoever counts rows asks for no column
        assert read_rows(planner, loaded, columns=[]).num_rows == expected.num_rows


def test_metadata_tables_are_filtered_and_show_the_snapshot_that_is_asked_for(planner, story):
    files = load(planner, below(story, "files"))
    one = {
        "op": "eq",
        "column": ["readable_metrics", "id", "lower_bound"],
        "type": "long",
        "value": 2,
    }
    assert read_rows(planner, files).num_rows == 2
    assert read_rows(planner, files, one).num_rows == 1
    # what Spark pushes and nobody understands leaves nothing out
    assert read_rows(planner, files, {"op": "strange"}).num_rows == 2
    assert read_rows(planner, files, options={"branch": "side"}).num_rows == 2
    assert read_rows(planner, files, options={"snapshot-id": str(story.first)}).num_rows == 1
    assert read_rows(planner, load(planner, below(story, "files"), version="kept")).num_rows == 1
    for name in NAMES:
        if name.startswith("all_"):
            with pytest.raises(ValidationError, match="Cannot select a snapshot"):
                load(planner, below(story, name), version="kept")
            with pytest.raises(ValidationError, match="Cannot select a snapshot"):
                read_rows(planner, load(planner, below(story, name)), options={"tag": "kept"})
        elif name not in TIME_TRAVELLING:
            travelled = load(planner, below(story, name), version="kept")
            assert read_rows(planner, travelled).equals(
                read_rows(planner, load(planner, below(story, name)))
            )


def test_metadata_tables_are_those_of_main_whatever_branch_is_audited(planner, story):
    with story.table.update_properties() as update:
        update.set("write.wap.enabled", "true")
    audit = {"wap_id": None, "wap_branch": "side"}
    files = load(planner, below(story, "files"), audit=audit)
    assert {
        r["readable_metrics"]["id"]["lower_bound"] for r in read_rows(planner, files).to_pylist()
    } == {1, 2}


def test_values_that_spark_has_no_type_for_become_what_it_shows_of_them(planner, catalog):
    name = f"odd_{uuid.uuid4().hex}"
    fields = (NestedField(1, "u", UUIDType()), NestedField(2, "f", FixedType(2)))
    table = catalog.create_table((*NAMESPACE, name), Schema(fields))
    value = uuid.UUID(int=7)
    u, f = pa.array([value.bytes], pa.uuid()), pa.array([b"ab"], pa.binary(2))
    table.append(pa.table({"u": u, "f": f}))
    files = load(planner, {"namespace": [*NAMESPACE, name], "name": "files"})
    metrics = read_rows(planner, files, columns=["readable_metrics"]).to_pylist()[0]
    assert metrics["readable_metrics"]["u"]["lower_bound"] == str(value)
    assert metrics["readable_metrics"]["f"]["lower_bound"] == b"ab"
    deletes = load(planner, {"namespace": [*NAMESPACE, name], "name": "position_deletes"})
    assert read_rows(planner, deletes) is None
    lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), u)
    maps = pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["k"]), f)
    structs = pa.StructArray.from_arrays([u, lists], names=["u", "l"])
    shown = _for_spark(pa.record_batch({"s": structs, "m": maps, "n": pa.array([1])}))
    assert shown.to_pylist() == [
        {"s": {"u": str(value), "l": [str(value)]}, "m": [("k", b"ab")], "n": 1}
    ]


def test_a_table_is_read_and_written_by_its_place(planner, story, tmp_path):
    from icecomb.catalog import load_catalog

    files = load_catalog("places", type="hadoop", warehouse=str(tmp_path))
    files.create_namespace("db")
    table = files.create_table("db.t", Schema(COLUMNS))
    table.append(pa.table({"id": [1], "s": ["a"]}))
    place = f"{tmp_path}/db/t"
    loaded = load(planner, {"namespace": [], "name": place})
    assert rows(planner, loaded) == 1
    shown = load(planner, {"namespace": [], "name": f"{place}#snapshots"})
    assert read_rows(planner, shown).num_rows == 1
    write = begin(planner, loaded, "overwrite")
    planner.ask("commit_write", write=write, files=[])
    assert table.refresh().scan().count() == 0
    exists = {
        p: planner.ask("table_exists", catalog=planner.catalog, table={"namespace": [], "name": p})
        for p in (place, f"{place}x")
    }
    assert [exists[p]["exists"] for p in exists] == [True, False]
    with pytest.raises(UnsupportedError, match="cannot be renamed"):
        planner.ask(
            "rename_table",
            catalog=planner.catalog,
            table={"namespace": [], "name": place},
            target={"namespace": [], "name": f"{place}2"},
        )
    with pytest.raises(ValidationError, match="cannot be dropped without its files"):
        planner.ask(
            "drop_table",
            catalog=planner.catalog,
            table={"namespace": [], "name": place},
            purge=False,
        )
    assert table.refresh().scan().count() == 0
    # a metadata file is a state of its table for ever
    alone = load(planner, {"namespace": [], "name": story.table.metadata_location})
    assert rows(planner, alone) == 2
    with pytest.raises(UnsupportedError):
        planner.ask("commit_write", write=begin(planner, alone, "overwrite"), files=[])
