"""Streams as the bridge asks for them: offsets, batches, and what stops them."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import urllib.parse
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.errors import (
    ConfigurationError,
    NoSuchSnapshotError,
    SchemaError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.manifests.manifest_list import read_manifests, write_manifest_list
from icecomb.format.operation.overwrite import RewriteFiles
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import IntegerType, LongType, NestedField
from tests.spark.planner.protocol import NAMESPACE, NO_AUDIT, NO_HINTS, selection

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False))
NUMBERS = itertools.count(1)
BEFORE_ALL = {"version": 1, "snapshot_id": -1, "position": -1, "scan_all_files": False}


@pytest.fixture
def table(catalog):
    return catalog.create_table((NAMESPACE[0], f"stream{next(NUMBERS)}"), SCHEMA)


class Query:
    """What Spark does for one run of a streaming query: asks, keeps offsets, runs batches."""

    def __init__(self, planner, table, checkpoint=None, below=None, audit=NO_AUDIT, **options):
        self._planner = planner
        place = {"namespace": list(table.identifier), "name": below} if below else None
        below_it = {"table": place} if below else {}
        described = planner.load(table.identifier[-1], audit=audit, **below_it)
        ids = [f["metadata"]["parquet.field.id"] for f in described["schema"]["fields"]]
        self._scan = {
            "selection": selection(
                described,
                [],
                {key.replace("_", "-"): str(value) for key, value in options.items()},
            ),
            "field_ids": ids,
            "estimates_columns": False,
            "hints": NO_HINTS,
            "changes": None,
            "limit": None,
            "files": None,
            "top": None,
        }
        self.log = {} if checkpoint is None else checkpoint
        self.opened = planner.ask("open_stream", scan=self._scan, initial=self.log.get("initial"))
        self.log.setdefault("initial", self.opened["initial"])
        self.log.setdefault("offsets", [])
        self.log.setdefault("done", 0)

    @property
    def at(self):
        return self.log["offsets"][-1] if self.log["offsets"] else self.log["initial"]

    def end(self):
        return self._planner.ask("stream_end", stream=self.opened["stream"])["offset"]

    def begin(self, until=None):
        """Log the end of the next batch, as Spark does before it runs it; False if there is none."""
        offset = self._planner.ask(
            "latest_offset",
            stream=self.opened["stream"],
            start=self.at,
            max_files=self.opened["max_files"],
            max_rows=self.opened["max_rows"],
            until=until,
        )["offset"]
        if offset is not None:
            self.log["offsets"].append(offset)
        return offset is not None

    def rows(self, number):
        """The rows of a batch that is logged, however often it is asked for."""
        offsets = [self.log["initial"], *self.log["offsets"]]
        plan = self._planner.ask(
            "plan_stream",
            stream=self.opened["stream"],
            scan=self._scan,
            start=offsets[number],
            end=offsets[number + 1],
        )
        ranges = [part for group in plan["partitions"] for part in group]
        assert all(part["start"] <= 4 for part in ranges), "these files are read whole"
        found = []
        for part in ranges:
            file = plan["files"][part["file"]]
            assert file["deletes"] is None
            path = urllib.parse.urlparse(file["path"]).path
            found += pq.read_table(path)["id"].to_pylist()
        return sorted(found)

    def run(self, until=None):
        """The batches up to the present end."""
        found = []
        while True:
            while self.log["done"] < len(self.log["offsets"]):
                found.append(self.rows(self.log["done"]))
                self.log["done"] += 1
            if not self.begin(until):
                return found


def compact(table):
    """One commit that writes all rows into files of its own."""
    files = [task.file for task in table.scan().plan_files()]
    added = write_data(table.io, table.metadata, table.scan().to_arrow())
    change = RewriteFiles(table.io).validate_from_snapshot(table.current_snapshot().snapshot_id)
    table.commit(change.rewrite_files(files, added))
    return table.refresh().current_snapshot()


def expire(table, kept):
    table.expire_snapshots().retain_last(kept).older_than(2**52).commit()
    table.refresh()


def append(table, *ids):
    """One commit with a file for each id."""
    with table.transaction() as transaction:
        transaction.append(pa.table({"id": pa.array(ids, pa.int64())}))
    return table.refresh().current_snapshot()


def test_a_stream_has_each_append_once_and_offsets_are_those_of_iceberg_java(planner, table):
    query = Query(planner, table)
    assert json.loads(query.opened["initial"]) == BEFORE_ALL
    assert query.run() == []
    append(table, 1, 2)
    second = append(table, 3)
    assert query.run() == [[1, 2, 3]]
    assert json.loads(query.at) == {
        "version": 1, "snapshot_id": second.snapshot_id, "position": 1, "scan_all_files": False,
    }  # fmt: skip
    assert query.run() == []
    append(table, 4)
    assert query.run() == [[4]]
    assert Query(planner, table).run() == [[1, 2, 3, 4]]


def test_files_of_another_table_of_the_same_uuid_are_not_counted(planner, catalog, table):
    first, snapshot = append(table, 1, 2), append(table, 3)
    folder = Path(table.location().removeprefix("file:"))
    twin = folder.with_name(f"{folder.name}_twin")
    shutil.copytree(folder, twin)
    file = twin / "metadata" / Path(table.metadata_location).name
    told = json.loads(file.read_text())
    stated = told["snapshots"][-1]
    stated["manifest-list"] = str(twin / "metadata" / "less.avro")
    write_manifest_list(
        table.io,
        stated["manifest-list"],
        read_manifests(table.io, first),
        format_version=2,
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=first.snapshot_id,
        sequence_number=2,
    )
    file.write_text(json.dumps({**told, "location": str(twin)}))
    other = catalog.load_table((NAMESPACE[0], twin.name))
    assert Query(planner, other).run() == [[1, 2]]
    assert Query(planner, table).run() == [[1, 2, 3]]


def test_limits_count_files_and_the_file_that_reaches_the_rows_is_the_last(planner, table):
    for ids in ([1, 2], [3], [4, 5, 6], [7]):
        append(table, *ids)
    by_files = Query(planner, table, streaming_max_files_per_micro_batch=1)
    assert by_files.run() == [[1, 2], [3], [4, 5, 6], [7]]
    by_rows = Query(planner, table, streaming_max_rows_per_micro_batch=3)
    assert by_rows.run() == [[1, 2, 3], [4, 5, 6], [7]]
    both = Query(
        planner,
        table,
        streaming_max_rows_per_micro_batch=2,
        streaming_max_files_per_micro_batch=2,
    )
    assert both.run() == [[1, 2], [3, 4, 5, 6], [7]]
    assert (both.opened["max_files"], both.opened["max_rows"]) == (2, 2)


@pytest.mark.parametrize(
    "options",
    [
        {"streaming_max_files_per_micro_batch": 0},
        {"streaming_max_rows_per_micro_batch": "many"},
        {"streaming_skip_delete_snapshots": "perhaps"},
        {"stream_from_timestamp": "yesterday"},
    ],
)
def test_an_option_that_says_nothing_is_refused(planner, table, options):
    with pytest.raises(ConfigurationError, match="cannot be"):
        Query(planner, table, **options)


@pytest.mark.parametrize("option", ["tag", "snapshot-id", "start-snapshot-id", "versionAsOf"])
def test_a_stream_of_another_state_is_refused(planner, table, option):
    with pytest.raises(UnsupportedError, match=f"not the option {option.lower()}"):
        Query(planner, table, **{option: "1"})


def test_a_time_says_where_to_begin(planner, table):
    first, second = append(table, 1), append(table, 2)
    assert first.timestamp_ms < second.timestamp_ms
    append(table, 3)
    at = Query(planner, table, stream_from_timestamp=second.timestamp_ms)
    assert at.run() == [[2, 3]]
    later = Query(planner, table, stream_from_timestamp=first.timestamp_ms + 1)
    assert later.run() == [[2, 3]]
    future = Query(planner, table, stream_from_timestamp=2**52)
    assert json.loads(future.opened["initial"]) == BEFORE_ALL
    append(table, 4)
    assert future.run() == []


def test_what_changes_rows_stops_the_stream_unless_it_is_to_be_passed_over(planner, table):
    append(table, 1)
    query = Query(planner, table)
    assert query.run() == [[1]]
    table.delete("id = 1")
    table.refresh()
    deleted = table.current_snapshot()
    with pytest.raises(ValidationError, match=f"{deleted.snapshot_id} is of operation delete") as e:
        query.run()
    assert "streaming-skip-delete-snapshots" in e.value.hint
    log = query.log
    skipping = Query(planner, table, log, streaming_skip_delete_snapshots="true")
    append(table, 2)
    assert skipping.run() == [[2]]
    table.overwrite(pa.table({"id": pa.array([5], pa.int64())}))
    table.refresh()
    with pytest.raises(ValidationError, match="operation overwrite") as e:
        skipping.run()
    assert "streaming-skip-overwrite-snapshots" in e.value.hint
    append(table, 6)
    options = {
        "streaming_skip_delete_snapshots": "true",
        "streaming_skip_overwrite_snapshots": "true",
    }
    assert Query(planner, table, log, **options).run() == [[6]]
    # what was passed over with the options is behind the stream without them
    append(table, 7)
    assert Query(planner, table, log).run() == [[7]]


def test_compacted_files_are_passed_over_and_their_snapshot_may_be_all_that_is_left(planner, table):
    append(table, 1)
    append(table, 2)
    query = Query(planner, table)
    assert query.run() == [[1, 2]]
    replaced = compact(table)
    assert replaced.operation == "replace"
    assert query.run() == [[]]
    assert json.loads(query.at)["snapshot_id"] == replaced.snapshot_id
    append(table, 3)
    expire(table, 2)
    assert query.run() == [[3]]


def test_a_new_stream_of_a_table_with_expired_history_begins_with_all_rows(planner, table):
    for i in range(4):
        append(table, i)
    kept = table.snapshots()[-2]
    expire(table, 2)
    query = Query(planner, table, streaming_max_files_per_micro_batch=2)
    assert json.loads(query.opened["initial"]) == {
        "version": 1, "snapshot_id": kept.snapshot_id, "position": 0, "scan_all_files": True,
    }  # fmt: skip
    batches = query.run()
    assert sorted(itertools.chain(*batches)) == [0, 1, 2, 3]
    assert [len(batch) for batch in batches] == [2, 2]
    with pytest.raises(NoSuchSnapshotError, match="does not know any more") as e:
        Query(planner, table, stream_from_timestamp=kept.timestamp_ms)
    assert str(kept.timestamp_ms + 1) in e.value.hint
    assert Query(planner, table, stream_from_timestamp=kept.timestamp_ms + 1).run() == [[3]]


def test_a_stream_that_was_stopped_for_too_long_says_so(planner, table):
    append(table, 1)
    query = Query(planner, table)
    assert query.run() == [[1]]
    for i in range(2, 5):
        append(table, i)
    expire(table, 1)
    with pytest.raises(NoSuchSnapshotError, match="not there any more") as e:
        Query(planner, table, query.log).run()
    assert "new checkpoint" in e.value.hint


def test_a_rollback_stops_the_stream_and_undoing_it_lets_it_go_on(planner, table):
    first = append(table, 1)
    second = append(table, 2)
    query = Query(planner, table)
    assert query.run() == [[1, 2]]
    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    with pytest.raises(ValidationError, match="rolled back"):
        query.run()
    table.manage_snapshots().set_current_snapshot(second.snapshot_id).commit()
    append(table, 3)
    assert query.run() == [[3]]
    # a batch that was logged is the same although main went elsewhere
    assert query.rows(0) == [1, 2]
    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    append(table, 9)
    assert query.rows(0) == [1, 2]
    with pytest.raises(ValidationError, match="rolled back"):
        query.run()


def test_staged_and_branched_appends_appear_when_main_has_them(planner, table):
    append(table, 1)
    query = Query(planner, table)
    assert query.run() == [[1]]
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "side").commit()
    table.append(pa.table({"id": pa.array([2], pa.int64())}), branch="side")
    assert query.run() == []
    table.manage_snapshots().fast_forward("main", "side").commit()
    assert query.run() == [[2]]


def branch(table, name, snapshot):
    table.manage_snapshots().create_branch(snapshot.snapshot_id, name).commit()
    table.refresh()


def append_to(table, name, *ids):
    table.append(pa.table({"id": pa.array(ids, pa.int64())}), branch=name)
    table.refresh()


def test_a_stream_of_a_branch_has_what_is_appended_to_it_once(planner, table):
    first = append(table, 1)
    branch(table, "side", first)
    append_to(table, "side", 2, 3)
    append(table, 4)
    query = Query(planner, table, branch="side", streaming_max_files_per_micro_batch=1)
    assert query.run() == [[1], [2, 3]]
    by_name = Query(planner, table, below="branch_side", branch="side")
    until = by_name.end()
    append_to(table, "side", 5)
    assert by_name.run(until) == [[1, 2, 3]]
    # after a restart by the other way of naming it
    assert Query(planner, table, query.log, below="branch_side").run() == [[5]]
    assert Query(planner, table, query.log, branch="side").run() == []
    assert Query(planner, table, branch="main").run() == [[1, 4]]
    time_ms = table.snapshot_by_name("side").timestamp_ms
    assert Query(planner, table, branch="side", stream_from_timestamp=time_ms).run() == [[5]]


def test_a_branch_that_goes_forward_is_followed_and_one_that_is_replaced_is_an_error(
    planner, table
):
    first = append(table, 1)
    branch(table, "side", first)
    query = Query(planner, table, branch="side")
    assert query.run() == [[1]]
    append(table, 2, 3)
    forward = table.manage_snapshots().fast_forward("side", "main")
    forward.commit()
    assert query.run() == [[2, 3]]
    table.refresh()
    append_to(table, "side", 4)
    assert query.run() == [[4]]
    table.manage_snapshots().replace_branch(first.snapshot_id, "side").commit()
    with pytest.raises(ValidationError, match=r"Branch side of table .* was rolled back") as e:
        query.run()
    assert "Restore a history of side with" in e.value.hint
    assert query.rows(2) == [4]
    table.refresh()
    append_to(table, "side", 5)
    with pytest.raises(ValidationError, match=r"Branch side of table .* was rolled back"):
        Query(planner, table, query.log, branch="side").run()
    # a checkpoint is of one line of snapshots: main is another one
    with pytest.raises(ValidationError, match="rolled back or replaced"):
        Query(planner, table, query.log).run()
    table.manage_snapshots().remove_branch("side").commit()
    with pytest.raises(NoSuchSnapshotError, match="no branch that is called side"):
        query.run()


def test_a_stream_follows_branches_that_are_there_and_no_tags(planner, table):
    first = append(table, 1)
    table.manage_snapshots().create_tag(first.snapshot_id, "kept").commit()
    branch(table, "side", first)
    with pytest.raises(NoSuchSnapshotError, match="a tag, not a branch, that is called kept"):
        Query(planner, table, branch="kept")
    with pytest.raises(NoSuchSnapshotError, match="no branch that is called nowhere") as e:
        Query(planner, table, branch="nowhere")
    assert "main, side" in e.value.hint
    with pytest.raises(ValidationError, match="contradicts the name"):
        Query(planner, table, below="branch_side", branch="main")
    for below in ("tag_kept", f"snapshot_id_{first.snapshot_id}"):
        with pytest.raises(UnsupportedError, match="not one of its versions"):
            Query(planner, table, below=below)
    with pytest.raises(UnsupportedError, match="not its table changes"):
        Query(planner, table, below="changes")
    with table.transaction() as change:
        change.set_properties({"write.wap.enabled": "true"})
    with pytest.raises(UnsupportedError, match=r"not branch side of spark\.wap\.branch"):
        Query(planner, table, audit={"wap_id": None, "wap_branch": "side"})


def test_a_query_that_ends_with_what_there_is_does_not_read_what_comes_meanwhile(planner, table):
    empty = Query(planner, table)
    until = empty.end()
    append(table, 1)
    assert empty.run(until) == []
    query = Query(planner, table)
    until = query.end()
    append(table, 2)
    assert query.run(until) == [[1]]
    assert query.run() == [[2]]


def test_another_table_of_the_name_and_another_type_stop_the_stream(planner, table, catalog):
    name = table.identifier
    catalog.purge_table(name)
    table = catalog.create_table(name, Schema(NestedField(1, "id", IntegerType(), required=False)))
    table.append(pa.table({"id": pa.array([1], pa.int32())}))
    query = Query(planner, table)
    assert query.run() == [[1]]
    with table.update_schema() as update:
        update.add_column("more", LongType())
    assert query.run() == []
    with table.update_schema() as update:
        update.update_column("id", LongType())
    with pytest.raises(SchemaError, match=r"id .* was int when the query started and is long now"):
        query.run()
    assert Query(planner, table, query.log).run() == []
    catalog.purge_table(name)
    catalog.create_table(name, SCHEMA)
    with pytest.raises(UnsupportedError, match="re-created"):
        query.run()


@pytest.mark.parametrize(
    "text", ["", "{}", '{"version":2}', "[1]", '{"version":1,"snapshot_id":"1"}']
)
def test_a_checkpoint_of_something_else_is_refused(planner, table, text):
    with pytest.raises(ValidationError, match="not of an Iceberg table"):
        Query(planner, table, {"initial": text})


@pytest.mark.seeds(6, gate=2)
def test_whatever_happens_each_row_that_was_appended_is_read_once(planner, table, seed):
    """Appends, compaction, expiration, limits that change, and runs that end anywhere."""
    chance = random.Random(seed)
    ids = itertools.count()
    appended, read, log = [], [], {}
    for _ in range(25):
        action = chance.choice(["append", "append", "append", "compact", "run", "run", "begin"])
        if action == "append":
            new = [next(ids) for _ in range(chance.randrange(1, 4))]
            append(table, *new)
            appended += new
        elif action == "compact" and appended:
            compact(table)
        else:
            options = chance.choice(
                [{}, {"streaming_max_files_per_micro_batch": chance.randrange(1, 4)},
                 {"streaming_max_rows_per_micro_batch": chance.randrange(1, 6)}]
            )  # fmt: skip
            query = Query(planner, table, log, **options)
            if action == "begin":
                # the process ends when the batch is logged: the next one runs it again
                while log["done"] < len(log["offsets"]):
                    read += query.rows(log["done"])
                    log["done"] += 1
                query.begin()
                continue
            read += itertools.chain(*query.run())
            if chance.random() < 0.3:
                expire(table, 1)
    if log:
        read += itertools.chain(*Query(planner, table, log).run())
    else:
        read += itertools.chain(*Query(planner, table).run())
    assert sorted(read) == appended
