"""A change that finds nothing to do in the state that its table object is pinned to."""

from __future__ import annotations

import shutil
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from icecomb.format.errors import (
    CommitFailedError,
    ConflictError,
    NoSuchFileError,
    SchemaError,
)
from icecomb.format.row_changes.write_target import WriteTarget
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.spec.types import LongType
from tests.rings import sampled

NUMBERS = pa.schema([("k", pa.int64()), ("v", pa.int64())])
MODES = ("copy-on-write", "merge-on-read")
LEVELS = ("serializable", "snapshot")


def frame(*rows) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), ()]
    return pa.table([pa.array(c, pa.int64()) for c in columns], NUMBERS)


def pairs(table) -> list[tuple[int, int]]:
    return sorted(tuple(r.values()) for r in table.refresh().scan().to_arrow().to_pylist())


def stream(*rows):
    return pa.RecordBatchReader.from_batches(NUMBERS, iter(frame(*rows).to_batches()))


def properties(version="2", mode="copy-on-write", isolation="serializable"):
    chosen = {"format-version": version}
    for command in ("delete", "merge"):
        chosen[f"write.{command}.mode"] = mode
        chosen[f"write.{command}.isolation-level"] = isolation
    return chosen


# what the others do to (1, 1), (5, 5); the change; the rows after both
CHANGES = {
    "delete": (lambda t: t.append(frame((7, 7))), lambda t: t.delete("k = 7"), [(1, 1), (5, 5)]),
    "overwrite": (
        lambda t: t.append(frame((7, 7))),
        lambda t: t.overwrite(frame(), "k = 7"),
        [(1, 1), (5, 5)],
    ),
    "overwrite by a stream": (
        lambda t: t.append(frame((7, 7))),
        lambda t: t.overwrite(stream(), "k = 7"),
        [(1, 1), (5, 5)],
    ),
    "upsert of a row that others change": (
        lambda t: t.overwrite(frame((5, 6)), "k = 5"),
        lambda t: t.upsert(frame((5, 5)), ["k"]),
        [(1, 1), (5, 5)],
    ),
    "upsert of a row that others delete": (
        lambda t: t.delete("k = 5"),
        lambda t: t.upsert(frame((5, 5)), ["k"]),
        [(1, 1), (5, 5)],
    ),
    "upsert by a stream": (
        lambda t: t.delete("k = 5"),
        lambda t: t.upsert(stream((5, 5)), ["k"]),
        [(1, 1), (5, 5)],
    ),
    "upsert without inserts": (
        lambda t: t.append(frame((7, 7))),
        lambda t: t.upsert(frame((7, 8)), ["k"], when_not_matched_insert_all=False),
        [(1, 1), (5, 5), (7, 8)],
    ),
    "upsert without updates": (
        lambda t: t.delete("k = 5"),
        lambda t: t.upsert(frame((5, 9)), ["k"], when_matched_update_all=False),
        [(1, 1), (5, 9)],
    ),
    "merge that deletes": (
        lambda t: t.append(frame((7, 7))),
        lambda t: t.merge(frame((7, 0)), on=["k"]).when_matched_delete().execute(),
        [(1, 1), (5, 5)],
    ),
    "merge that updates by a stream": (
        lambda t: t.append(frame((7, 7))),
        lambda t: t.merge(stream((7, 0)), on=["k"]).when_matched_update_all().execute(),
        [(1, 1), (5, 5), (7, 0)],
    ),
    "merge that inserts": (
        lambda t: t.delete("k = 5"),
        lambda t: t.merge(frame((5, 9)), on=["k"]).when_not_matched_insert_all().execute(),
        [(1, 1), (5, 9)],
    ),
    "merge of what the source lacks": (
        lambda t: t.append(frame((7, 7))),
        lambda t: (
            t.merge(frame((1, 1), (5, 5)), on=["k"]).when_not_matched_by_source_delete().execute()
        ),
        [(1, 1), (5, 5)],
    ),
}
CASES = [
    (version, mode, isolation, change)
    for version, mode, isolation, change in product("123", MODES, LEVELS, CHANGES)
    if version > "1" or mode == MODES[0]
]
EVERY_CHANGE = [("2", MODES[at % 2], LEVELS[at // 2 % 2], name) for at, name in enumerate(CHANGES)]


@pytest.mark.parametrize(("version", "mode", "isolation", "change"), EVERY_CHANGE)
def test_it_is_made_to_what_others_have_committed_since(lake, version, mode, isolation, change):
    others, make, expected = CHANGES[change]
    table = lake.create_table("db.t", NUMBERS, properties=properties(version, mode, isolation))
    table.append(frame((1, 1), (5, 5)))
    idle = lake.load_table("db.t")
    others(table)
    make(idle)
    assert pairs(idle) == expected


@pytest.mark.full("each change in each version, mode and isolation level")
@pytest.mark.parametrize(("version", "mode", "isolation", "change"), CASES)
def test_it_is_made_in_each_kind_of_table(lake, version, mode, isolation, change):
    test_it_is_made_to_what_others_have_committed_since(lake, version, mode, isolation, change)


def data_file(table, *rows) -> str:
    """Writes a data file that no table has, and returns its location."""
    [file] = write_data(table.io, table.metadata, frame(*rows))
    return file.file_path


@pytest.mark.parametrize("others_too", [False, True], ids=["alone", "beside a new one"])
def test_files_that_others_removed_are_added_again(lake, others_too):
    table = lake.create_table("db.t", NUMBERS, properties=properties())
    first, second = data_file(table, (1, 1)), data_file(table, (2, 2))
    table.add_files([first])
    idle = lake.load_table("db.t")
    table.delete()
    idle.add_files([first, second] if others_too else [first], on_duplicate="skip")
    assert pairs(idle) == [(1, 1), (2, 2)][: 1 + others_too]


def test_it_takes_one_look_at_the_pointer_where_nobody_has_committed(lake, monkeypatch):
    table = lake.create_table("db.t", NUMBERS, properties=properties())
    table.append(frame((1, 1), (5, 5)))
    looks, plans = [], []
    load, tasks = table._pointer.load, WriteTarget.tasks
    monkeypatch.setattr(table._pointer, "load", lambda: looks.append(1) or load())
    monkeypatch.setattr(WriteTarget, "tasks", lambda *a, **k: plans.append(1) or tasks(*a, **k))
    table.delete("k = 7")
    assert (len(looks), len(plans)) == (1, 1)
    lake.load_table("db.t").append(frame((7, 8)))
    table.delete("k = 8")
    # the state that was loaded then is new enough
    assert (len(looks), len(plans)) == (2, 3)


@pytest.mark.parametrize("finding", ["nothing", "refused", "gone"])
def test_a_change_ends_though_others_commit_at_each_look(lake, monkeypatch, finding):
    """Retries bound it: a metastore may name another file in each answer."""
    table = lake.create_table("db.t", NUMBERS, properties={"commit.retry.num-retries": "7"})
    table.append(frame((1, 1), (5, 5)))
    (file,) = table.inspect.files()["file_path"].to_pylist()
    change, kind = table.manage_snapshots().commit, CommitFailedError
    if finding == "refused":
        change, kind = table.update_schema().add_column("x", "long").commit, SchemaError
        table.update_schema().add_column("x", "string").commit()
    if finding == "gone":
        Path(file.removeprefix("file:")).unlink()
        change, kind = partial(table.delete, "k = 1"), NoSuchFileError
    looks, load = [], table._pointer.load

    def overtaken():
        if len(looks) > 20:
            pytest.fail("it does not end")
        looks.append(1)
        # not by a table object: its thread is committing
        newest = Path(load().location.removeprefix("file:"))
        number = int(newest.name.split(".")[0].removeprefix("v"))
        shutil.copy(newest, newest.with_name(f"v{number + 1}.metadata.json"))
        return load()

    monkeypatch.setattr(table._pointer, "load", overtaken)
    with pytest.raises(kind):
        change()
    assert len(looks) <= 15


# what others do beside a transaction of the change and an append; whether that is refused
BESIDE = {
    "a row that the delete is about": (lambda t: t.append(frame((7, 1))), True),
    "another row": (lambda t: t.append(frame((8, 1))), False),
    "a compaction": (
        lambda t: t.maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
        False,
    ),
    "the columns": (lambda t: t.update_schema().rename_column("k", "key").commit(), False),
}


@pytest.mark.parametrize("first", ["delete", "append"])
@pytest.mark.parametrize("beside", sampled(BESIDE, keep=2))
def test_a_transaction_is_refused_where_others_add_what_it_did_not_find(lake, beside, first):
    """As one that deletes and adds by one overwrite."""
    others, refused = BESIDE[beside]
    table = lake.create_table("db.t", NUMBERS, properties=properties())
    table.append(frame((1, 1), (5, 5)))
    table.append(frame((6, 6)))
    late = lake.load_table("db.t")
    transaction = late.transaction()
    for change in (first, "append" if first == "delete" else "delete"):
        if change == "append":
            transaction.append(frame((9, 0)))
        else:
            transaction.delete("k = 7")
    others(table)
    before = pairs(table)
    if refused:
        with pytest.raises(ConflictError, match="can contain records matching k = 7"):
            transaction.commit_transaction()
    else:
        transaction.commit_transaction()
    assert pairs(late) == sorted([*before, *([] if refused else [(9, 0)])])


NOT_FOUND = {
    "upsert": lambda t: t.upsert(frame((5, 5)), ["k"]),
    "merge": lambda t: t.merge(frame((5, 9)), on=["k"]).when_not_matched_insert_all().execute(),
}


@pytest.mark.parametrize("change", NOT_FOUND)
@pytest.mark.parametrize("isolation", LEVELS)
def test_a_transaction_is_refused_where_others_remove_what_it_relied_on(lake, change, isolation):
    table = lake.create_table("db.t", NUMBERS, properties=properties(isolation=isolation))
    table.append(frame((1, 1), (5, 5)))
    with suppress(ConflictError), lake.load_table("db.t").transaction() as transaction:
        NOT_FOUND[change](transaction)
        transaction.append(frame((9, 0)))
        table.delete("k = 5")
    # under snapshot isolation it has seen the first state only
    assert pairs(table) == ([(1, 1)] if isolation == LEVELS[0] else [(1, 1), (9, 0)])


def test_what_a_transaction_sets_back_is_not_looked_at(lake):
    table = lake.create_table("db.t", NUMBERS, properties=properties())
    table.append(frame((1, 1)))
    begin = table.current_snapshot().snapshot_id
    table.append(frame((7, 7)))
    with lake.load_table("db.t").transaction() as transaction:
        transaction.manage_snapshots().create_branch(begin, "side").commit()
        transaction.manage_snapshots().set_current_snapshot(begin).commit()
        transaction.delete("k = 7")
        transaction.delete("k = 7", branch="side")
        with table.update_properties() as update:
            update.set("a", "b")
    assert pairs(table) == [(1, 1)]


def test_a_replacement_does_not_look_at_what_it_replaces(lake):
    table = lake.create_table("db.t", NUMBERS, properties=properties())
    table.append(frame((1, 1)))
    with lake.replace_table_transaction("db.t", NUMBERS) as new:
        new.append(frame((2, 2)))
        new.delete("k = 7")
        table.append(frame((7, 7)))
    assert pairs(table) == [(2, 2)]


def test_a_filter_on_a_column_that_the_transaction_adds_is_looked_at(lake):
    """Files without the column may hold anything, as far as bounds tell."""
    table = lake.create_table("db.t", NUMBERS, properties=properties())
    transaction = lake.load_table("db.t").transaction()
    transaction.update_schema().add_column("x", LongType()).commit()
    transaction.delete("x = 3")
    table.append(frame((7, 7)))
    with pytest.raises(ConflictError):
        transaction.commit_transaction()
    assert pairs(table) == [(7, 7)]
