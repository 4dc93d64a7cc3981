"""Commits that others did not go on from are brought back: what they added, once, or not at all."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import cli, load_catalog
from icecomb.catalog.commit import commit_status
from icecomb.catalog.lost_commits import Outcome, is_settled, plan_reapplication, reapply
from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.publication import EPOCH_ID, QUERY_ID
from icecomb.format.property.table_property import NAME_MAPPING
from icecomb.format.spec.change.update import RemoveSnapshotsUpdate, update_table_metadata
from icecomb.format.spec.metadata_file import read_metadata, write_metadata
from tests.rings import sampled

NAMES = '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["day"]}]'
FAR = datetime(2100, 1, 1, tzinfo=timezone.utc)


def rows(*ids, day="mon"):
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "day": pa.array([day] * len(ids), pa.string())}
    )


def ids(table):
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


@pytest.fixture(autouse=True)
def an_hour_later(monkeypatch):
    """What was written a moment ago counts as old."""
    monkeypatch.setattr(commit_status, "OLD_MS", -1)


@pytest.fixture(params=sampled(["2", "1", "3"], keep=1))
def table(request, tmp_path):
    catalog = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    properties = {"format-version": request.param}
    table = catalog.create_table("db.t", rows().schema, properties=properties)
    table.append(rows(1, 2))
    return table


def lose(table, *changes):
    """Leave the metadata file of a commit that others did not go on from."""
    transaction = table.transaction()
    for change in changes:
        change(transaction)
    return leave(table, transaction)


def leave(table, transaction):
    updates = transaction.apply(table.metadata).updates
    made = update_table_metadata(table.metadata, updates, base_location=table.metadata_location)
    location = f"{table.location()}/metadata/{uuid.uuid4()}.metadata.json"
    write_metadata(table.io, made, location)
    return location


def append(*numbers, **more):
    return lambda transaction: transaction.append(rows(*numbers, **more))


def outcomes(line):
    return [one.outcome for one in line.commits]


def test_lost_appends_come_back_once(table):
    location = lose(table, append(3), append(4, 5))
    table.append(rows(6))
    line = plan_reapplication(table, location)
    assert outcomes(line) == [Outcome.LOST, Outcome.LOST]
    assert (ids(table), line.left_out) == ([1, 2, 6], ()), "asking changes nothing"
    before = read_metadata(table.io, table.metadata.metadata_log[-1].metadata_file)
    assert not is_settled(table.metadata, line.metadata, before)

    done = reapply(table, line)
    assert outcomes(done) == [Outcome.BROUGHT_BACK] * 2
    assert ids(table) == [1, 2, 3, 4, 5, 6]
    assert [s.operation for s in table.snapshots()] == ["append"] * 4
    assert is_settled(table.metadata, line.metadata, before)

    assert outcomes(reapply(table, line)) == [Outcome.NOTHING_TO_DO] * 2, "planned before"
    line = plan_reapplication(table, location)
    assert outcomes(line) == [Outcome.NOTHING_TO_DO] * 2
    assert again(table, line) == [Outcome.NOTHING_TO_DO] * 2
    assert ids(table) == [1, 2, 3, 4, 5, 6]


def test_rows_that_come_back_get_ids_of_their_own(tmp_path):
    """The lost commit and the one that went on numbered their rows from the same id."""
    lake = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", rows().schema, properties={"format-version": "3"})
    table.append(rows(1, 2))
    location = lose(table, append(3, 4))
    table.append(rows(5, 6, 7))
    table.delete("id = 6")
    older, next_row_id = lineage(table), table.metadata.next_row_id
    assert older == {1: (0, 1), 2: (1, 1), 5: (2, 2), 7: (4, 2)}

    done = reapply(table, plan_reapplication(table, location))

    assert outcomes(done) == [Outcome.BROUGHT_BACK]
    number = table.current_snapshot().sequence_number
    back = {3: (next_row_id, number), 4: (next_row_id + 1, number)}
    assert lineage(table) == older | back
    assert table.metadata.next_row_id == next_row_id + 2


def lineage(table):
    columns = "id", "_row_id", "_last_updated_sequence_number"
    found = table.refresh().scan(selected_fields=columns).to_arrow().to_pydict()
    return {one: (own, number) for one, own, number in zip(*found.values(), strict=True)}


def test_the_first_rows_of_a_table_come_back(tmp_path):
    lake = load_catalog("files", type="hadoop", warehouse=str(tmp_path))
    lake.create_namespace("db")
    table = lake.create_table("db.t", rows().schema)
    location = lose(table, append(1))
    table.append(rows(2))
    assert outcomes(reapply(table, plan_reapplication(table, location))) == [Outcome.BROUGHT_BACK]
    assert ids(table) == [1, 2]


def test_a_run_that_was_interrupted_goes_on(table):
    location = lose(table, append(3), append(4))
    table.append(rows(6))
    line = plan_reapplication(table, location)
    reapply(table, replace(line, commits=line.commits[:1]))
    table.append(rows(7))
    line = plan_reapplication(table, location)
    assert outcomes(line) == [Outcome.NOTHING_TO_DO, Outcome.LOST]
    reapply(table, line)
    assert ids(table) == [1, 2, 3, 4, 6, 7]


def test_what_its_writer_committed_in_another_attempt_is_in_the_table(table):
    transaction = table.transaction()
    transaction.append(rows(3))
    location = leave(table, transaction)
    table.catalog.load_table("db.t").append(rows(6))
    transaction.commit_transaction()
    line = plan_reapplication(table, location)
    assert outcomes(line) == [Outcome.NOTHING_TO_DO]
    assert again(table, line) == [Outcome.NOTHING_TO_DO]
    assert ids(table) == [1, 2, 3, 6]


def added_by(table, location):
    """The files that lost metadata added, as their manifests have them."""
    lost = read_metadata(table.io, location)
    manifests = read_manifests(table.io, lost.current_snapshot())
    return [
        entry.data_file
        for manifest in manifests
        if manifest.added_snapshot_id == lost.current_snapshot_id
        for entry in read_manifest(table.io, manifest, spec=lost.spec())
    ]


def again(table, line):
    """What becomes of a line of which all was lost when it was planned."""
    commits = tuple(replace(one, outcome=Outcome.LOST) for one in line.commits)
    return outcomes(reapply(table, replace(line, commits=commits)))


@pytest.mark.parametrize("compacted", [False, True])
def test_files_that_another_commit_added_do_not_come_twice(table, compacted):
    location = lose(table, append(3))
    table.append(rows(6))
    table.commit(FastAppend(table.io).append_data_file(*added_by(table, location)))
    if compacted:
        table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    table.delete("id = 3")
    line = plan_reapplication(table, location)
    assert outcomes(line) == [Outcome.NOTHING_TO_DO]
    assert again(table, line) == [Outcome.NOTHING_TO_DO]
    assert ids(table) == [1, 2, 6]


@pytest.mark.parametrize("compacted", [False, True])
def test_files_that_another_commit_spelled_otherwise_do_not_come_twice(table, compacted):
    location = lose(table, append(3))
    table.append(rows(6))
    (file,) = added_by(table, location)
    assert file.file_path.startswith("/")
    other = replace(file, file_path=f"file:{file.file_path}")
    table.commit(FastAppend(table.io).append_data_file(other))
    if compacted:
        table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    line = plan_reapplication(table, location)
    assert again(table, line) == [Outcome.NOTHING_TO_DO]
    assert ids(table) == [1, 2, 3, 6]


def test_a_batch_that_its_query_wrote_again_does_not_come_twice(table):
    batch = {QUERY_ID: "q", EPOCH_ID: "7"}
    location = lose(
        table,
        lambda change: change.append(rows(3), batch),
        lambda change: change.append(rows(4), {**batch, EPOCH_ID: "8"}),
    )
    table.append(rows(3), batch)
    line = reapply(table, plan_reapplication(table, location))
    assert outcomes(line) == [Outcome.NOTHING_TO_DO, Outcome.BROUGHT_BACK]
    assert table.current_snapshot().summary[EPOCH_ID] == "8", "the query looks for it"
    assert ids(table) == [1, 2, 3, 4]


def test_a_batch_that_comes_back_after_later_ones_is_not_taken_for_the_last(table):
    """Iceberg Java's sink asks the newest snapshot of its query which batch was the last."""
    batch = {QUERY_ID: "q", EPOCH_ID: "7"}
    location = lose(table, lambda change: change.append(rows(3), batch))
    again = lose(table, lambda change: change.append(rows(3), batch))
    table.append(rows(4), {**batch, EPOCH_ID: "8"})
    assert outcomes(reapply(table, plan_reapplication(table, location))) == [Outcome.BROUGHT_BACK]
    newest = next(s for s in reversed(table.snapshots()) if s.summary.get(QUERY_ID) == "q")
    assert newest.summary[EPOCH_ID] == "8"
    assert outcomes(plan_reapplication(table, again)) == [Outcome.NOTHING_TO_DO]
    assert ids(table) == [1, 2, 3, 4]


def test_nothing_comes_back_where_history_does_not_tell_whether_it_did(table):
    location = lose(table, append(3))
    table.append(rows(6))
    reapply(table, plan_reapplication(table, location))
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    table.delete("id = 3")
    for number in (7, 8):
        table.append(rows(number))
    table.maintenance.expire_snapshots().older_than(FAR).retain_last(1).commit()
    with table.update_properties() as change:
        change.remove("icecomb.published-snapshots")
    line = plan_reapplication(table, location)
    assert outcomes(reapply(table, line)) == [Outcome.REFUSED]
    assert "Cannot determine the history" in line.commits[0].reason
    assert ids(table) == [1, 2, 6, 7, 8]


def test_what_depends_on_other_rows_is_named_and_what_came_later_comes_back(table):
    location = lose(table, lambda change: change.delete("id = 1"), append(3))
    table.append(rows(6))
    line = reapply(table, plan_reapplication(table, location))
    assert outcomes(line) == [Outcome.REFUSED, Outcome.BROUGHT_BACK]
    assert "it is not an append" in line.commits[0].reason
    assert ids(table) == [1, 2, 3, 6]


def test_rows_do_not_come_back_that_a_lost_commit_may_have_deleted(table):
    location = lose(table, append(3), lambda change: change.delete("id = 3"), append(4))
    table.append(rows(6))
    line = reapply(table, plan_reapplication(table, location))
    assert outcomes(line) == [Outcome.REFUSED, Outcome.REFUSED, Outcome.BROUGHT_BACK]
    assert str(line.commits[1].snapshot.snapshot_id) in line.commits[0].reason
    assert ids(table) == [1, 2, 4, 6]


@pytest.mark.parametrize("how", ["rollback", "replacement"])
def test_rows_of_a_lost_rollback_or_replacement_do_not_join_those_they_replaced(table, how):
    first = table.current_snapshot().snapshot_id
    if how == "rollback":
        table.append(rows(8))
        location = lose(
            table,
            lambda change: change.manage_snapshots().rollback_to_snapshot(first).commit(),
            append(9),
        )
    else:
        change = table.catalog.replace_table_transaction("db.t", rows().schema)
        change.append(rows(1, 2))
        location = leave(table, change)
    table.append(rows(6))
    before = ids(table)
    line = reapply(table, plan_reapplication(table, location))
    assert outcomes(line) == [Outcome.REFUSED]
    assert "replaced or rolled back" in line.commits[0].reason
    assert ids(table) == before


def test_a_commit_does_not_come_back_without_one_before_it_that_expired(table):
    whole = lose(table, append(3), append(4))
    lost = read_metadata(table.io, whole)
    gone = RemoveSnapshotsUpdate((lost.current_snapshot().parent_snapshot_id,))
    expired = update_table_metadata(lost, [gone], base_location=whole)
    location = f"{table.location()}/metadata/{uuid.uuid4()}.metadata.json"
    write_metadata(table.io, expired, location)
    table.append(rows(6))
    line = reapply(table, plan_reapplication(table, location))
    assert outcomes(line) == [Outcome.REFUSED]
    assert "have expired" in line.commits[0].reason
    assert ids(table) == [1, 2, 6]
    reapply(table, plan_reapplication(table, whole))
    assert ids(table) == [1, 2, 3, 4, 6]


def test_a_lost_publication_is_not_made_again_from_what_was_published(table):
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "b").commit()
    table.append(rows(3), branch="b")
    source = table.metadata.refs["b"].snapshot_id
    table.append(rows(5))
    location = lose(table, lambda change: change.manage_snapshots().cherry_pick(source).commit())
    table.append(rows(6))
    line = reapply(table, plan_reapplication(table, location))
    assert outcomes(line) == [Outcome.BROUGHT_BACK]
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    with pytest.raises(ValidationError, match="picked already"):
        table.manage_snapshots().cherry_pick(source).commit()
    assert outcomes(plan_reapplication(table, location)) == [Outcome.NOTHING_TO_DO]
    assert ids(table) == [1, 2, 3, 5, 6]


def test_what_was_staged_and_published_before_it_was_lost_comes_back_once(table):
    with table.update_properties() as change:
        change.set("write.wap.enabled", "true")
    location = lose(
        table,
        lambda change: change.append(rows(3), {"wap.id": "load"}),
        append(4),
        lambda change: change.publish_changes("load"),
    )
    table.append(rows(6))
    line = reapply(table, plan_reapplication(table, location))
    assert outcomes(line) == [Outcome.BROUGHT_BACK, Outcome.BROUGHT_BACK, Outcome.NOTHING_TO_DO]
    assert "published as snapshot" in line.commits[2].reason
    assert outcomes(plan_reapplication(table, location)) == [Outcome.NOTHING_TO_DO] * 3
    assert ids(table) == [1, 2, 3, 4, 6]


def test_rows_do_not_come_back_that_a_batch_written_again_had_replaced(table):
    batch = {QUERY_ID: "q", EPOCH_ID: "7"}
    location = lose(table, append(3), lambda change: change.overwrite(rows(9), "id > 0", batch))
    table.overwrite(rows(9), "id > 0", batch)
    line = reapply(table, plan_reapplication(table, location))
    assert outcomes(line) == [Outcome.REFUSED, Outcome.NOTHING_TO_DO]
    assert "may have removed rows of it" in line.commits[0].reason
    assert ids(table) == [9]


def test_rows_that_were_added_as_they_were_missing_do_not_come_twice(table):
    location = lose(table, lambda change: change.upsert(rows(3), join_cols=["id"]), append(4))
    table.upsert(rows(3), join_cols=["id"])
    line = reapply(table, plan_reapplication(table, location))
    assert outcomes(line) == [Outcome.REFUSED, Outcome.BROUGHT_BACK]
    assert "depend on the rows that the table had" in line.commits[0].reason
    assert ids(table) == [1, 2, 3, 4]


def test_a_file_of_the_history_is_known_in_another_spelling(table):
    first = table.current_snapshot().snapshot_id
    table.append(rows(3))
    location = table.metadata_location
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    table.append(rows(6))
    with pytest.raises(ValidationError, match="is not lost"):
        plan_reapplication(table, f"file:{location}")
    assert ids(table) == [1, 2, 6]


def test_a_lost_compaction_is_nothing_to_bring_back(table):
    table.append(rows(3))
    location = lose(table, append(4), lambda change: change.rewrite_manifests())
    table.append(rows(6))
    line = plan_reapplication(table, location)
    assert outcomes(line) == [Outcome.LOST, Outcome.NOTHING_TO_DO]
    reapply(table, line)
    assert ids(table) == [1, 2, 3, 4, 6]


def test_a_replaced_partition_that_others_rewrote_is_refused_when_it_is_planned(table):
    with table.update_spec() as spec:
        spec.add_field("day", "identity")
    table.overwrite(rows(1, 2))
    location = lose(table, lambda change: change.dynamic_partition_overwrite(rows(3)))
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    line = plan_reapplication(table, location)
    assert outcomes(line) == [Outcome.REFUSED]
    assert "missing data files" in line.commits[0].reason
    assert ids(table) == [1, 2]


@pytest.mark.parametrize("day", ["mon", "tue"])
def test_a_replaced_partition_comes_back_unless_others_added_to_it(table, day):
    with table.update_spec() as spec:
        spec.add_field("day", "identity")
    table.overwrite(rows(1, 2))
    location = lose(table, lambda change: change.dynamic_partition_overwrite(rows(3)))
    table.append(rows(6, day=day))
    line = reapply(table, plan_reapplication(table, location))
    if day == "mon":
        assert outcomes(line) == [Outcome.REFUSED]
        assert "conflicting files" in line.commits[0].reason
        assert ids(table) == [1, 2, 6]
    else:
        assert outcomes(line) == [Outcome.BROUGHT_BACK]
        assert ids(table) == [3, 6]


def test_files_of_columns_that_are_lost_stay_away_from_columns_with_their_ids(table):
    def widen(change):
        with change.update_schema() as update:
            update.add_column("note", "long")

    location = lose(
        table, widen, lambda change: change.append(rows(3).append_column("note", [[7]]))
    )
    with table.update_schema() as update:
        update.add_column("price", "long")
    table.append(rows(6).append_column("price", [[8]]))
    line = reapply(table, plan_reapplication(table, location))
    assert outcomes(line) == [Outcome.REFUSED]
    assert "columns" in line.commits[0].reason
    assert any("note" in change for change in line.left_out)
    assert ids(table) == [1, 2, 6]


def test_nulls_stay_away_from_a_column_that_became_required(table):
    location = lose(table, append(3, day=None), append(4))
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("day", required=True)
    table.append(rows(6))
    line = reapply(table, plan_reapplication(table, location))
    assert outcomes(line) == [Outcome.REFUSED, Outcome.BROUGHT_BACK]
    assert "required" in line.commits[0].reason
    assert ids(table) == [1, 2, 4, 6]


@pytest.mark.parametrize("name", ["day", "d"])
def test_files_without_ids_stay_away_where_the_names_of_their_columns_are_lost(
    table, tmp_path, name
):
    file = str(tmp_path / "added.parquet")
    pq.write_table(rows(3).rename_columns(["id", name]), file)
    names = NAMES.replace("day", name)
    location = lose(
        table,
        lambda change: change.set_properties({NAME_MAPPING.key: names}),
        lambda change: change.add_files([file]),
    )
    if name == "d":
        with table.update_properties() as change:
            change.set(NAME_MAPPING.key, NAMES)
    table.append(rows(6))
    line = reapply(table, plan_reapplication(table, location))
    assert outcomes(line) == [Outcome.REFUSED]
    assert NAME_MAPPING.key in line.commits[0].reason
    assert ids(table) == [1, 2, 6]
    table.add_files([file])
    assert ids(table) == [1, 2, 3, 6]


def test_files_do_not_claim_an_order_that_is_lost(table):
    def sort(change):
        with change.update_sort_order() as order:
            order.asc("id")

    location = lose(table, sort, append(3))
    with table.update_sort_order() as order:
        order.desc("day")
    assert outcomes(reapply(table, plan_reapplication(table, location))) == [Outcome.BROUGHT_BACK]
    assert not any(table.inspect.files()["sort_order_id"].to_pylist())
    assert ids(table) == [1, 2, 3]


def test_properties_and_branches_are_named(table):
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "audit").commit()

    location = lose(
        table,
        lambda change: change.set_properties({"mine": "x"}),
        lambda change: change.append(rows(3), branch="audit"),
        append(4),
        lambda change: change.delete("id = 3", branch="audit"),
    )
    table.append(rows(6))
    line = reapply(table, plan_reapplication(table, location))
    assert outcomes(line) == [Outcome.BROUGHT_BACK, Outcome.REFUSED, Outcome.REFUSED]
    assert all("of another branch" in one.reason for one in line.commits[1:])
    told = " ".join(line.left_out)
    assert "property added: mine" in told
    assert "audit" in told
    assert "main" not in told
    assert ids(table) == [1, 2, 4, 6]


def test_files_that_are_gone_are_told(table):
    there = set(Path(table.location()).rglob("*.parquet"))
    location = lose(table, append(3))
    (gone,) = set(Path(table.location()).rglob("*.parquet")) - there
    gone.unlink()
    table.append(rows(6))
    line = reapply(table, plan_reapplication(table, location))
    assert outcomes(line) == [Outcome.REFUSED]
    assert str(gone) in line.commits[0].reason
    assert ids(table) == [1, 2, 6]


def test_what_its_writer_may_try_again_waits(table, monkeypatch):
    monkeypatch.setattr(commit_status, "OLD_MS", 3_600_000)
    location = lose(table, append(3))
    table.append(rows(6))
    with pytest.raises(ValidationError, match="younger than an hour"):
        plan_reapplication(table, location)


def test_only_lost_files_of_the_table_are_brought_back(table):
    location = lose(table, append(3))
    with pytest.raises(ValidationError, match="no commit has followed") as refused:
        plan_reapplication(table, location)
    assert f"icecomb repair db.t --to {location}" in refused.value.hint
    older = table.metadata_location
    table.append(rows(6))
    for known in (older, table.metadata_location):
        with pytest.raises(ValidationError, match="is not lost"):
            plan_reapplication(table, known)
    other = table.catalog.create_table("db.other", rows().schema)
    with pytest.raises(ValidationError, match="a file of another table"):
        plan_reapplication(other, location)
    with table.update_properties() as change:
        change.set("write.metadata.previous-versions-max", "1")
    table.append(rows(7))
    with pytest.raises(ValidationError, match="does not reach back"):
        plan_reapplication(table, location)
    assert ids(table) == [1, 2, 6, 7]


def test_the_command_says_what_was_lost_and_brings_it_back(table, capsys):
    location = lose(table, lambda change: change.delete("id = 1"), append(3))
    table.append(rows(6))
    command = ["repair", table.location(), "--reapply", location]
    assert cli.main(command) == 3
    out, err = capsys.readouterr()
    assert "append (1 rows added" in out
    assert ": lost" in out
    assert ": refused: " in out
    assert "dry run" in err
    assert ids(table) == [1, 2, 6]
    assert cli.main([*command, "--yes"]) == 3
    assert ": brought back: as snapshot" in capsys.readouterr().out
    assert ids(table) == [1, 2, 3, 6]
    assert cli.main([*command, "--to", location]) == 2


def test_the_command_says_by_its_exit_code_that_a_property_is_lost(table, capsys):
    location = lose(table, lambda change: change.set_properties({"mine": "x"}), append(3))
    table.append(rows(6))
    assert cli.main(["repair", table.location(), "--reapply", location, "--yes"]) == 3
    assert "property added: mine" in capsys.readouterr().out
    assert ids(table) == [1, 2, 3, 6]
