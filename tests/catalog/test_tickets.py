"""Writers take turns by tickets where storage has no locks on folders; nothing depends on it."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.hadoop import process_lock
from icecomb.catalog.hadoop.pointer import VersionFiles
from icecomb.catalog.hadoop.process_lock import WAITING, Patience, Tickets
from icecomb.format.errors import FileIOError, NoSuchFileError, NoSuchTableError
from icecomb.format.holding import Holding
from icecomb.format.storage.local import LocalFileSystem

ROWS = pa.table({"id": pa.array(range(10), pa.int64())})


@pytest.fixture(autouse=True)
def _without_folder_locks(monkeypatch):
    monkeypatch.setattr(LocalFileSystem, "folder_lock", lambda *_: None)


@pytest.fixture
def lake(tmp_path):
    settings = {"warehouse": str(tmp_path), "lock.heartbeat-timeout-ms": "50"}
    return load_catalog("lake", type="hadoop", **settings)


@pytest.fixture
def table(lake):
    table = lake.create_table("t", ROWS.schema)
    table.append(ROWS)
    return table


@pytest.fixture
def waiting(table, tmp_path):
    return tmp_path / "t" / "metadata" / WAITING


@pytest.fixture
def drawn(monkeypatch):
    """The tickets that were drawn."""
    names = []
    create = LocalFileSystem.create_folder

    def logged(self, location):
        names.append(location.rpartition("/")[2])
        create(self, location)

    monkeypatch.setattr(LocalFileSystem, "create_folder", logged)
    return names


@pytest.fixture
def sleeps(monkeypatch):
    """What happens at each look for a ticket that is still there, one after the other; then nothing."""
    steps = []
    count = []
    sleep, own = time.sleep, threading.current_thread()

    def slept(seconds):
        # threads that other tests left sleep, too
        if threading.current_thread() is own:
            count.append(seconds)
            if steps:
                steps.pop(0)()
        sleep(seconds)

    monkeypatch.setattr(process_lock.time, "sleep", slept)
    slept.steps, slept.count = steps, count
    return slept


def tickets(table, *, patience_s=60.0, state=None):
    files = VersionFiles(table.io, table.location())
    return Tickets(table.io, files.folder, Patience(state or files.newest, patience_s, 60), 0.01)


def test_who_loses_no_race_draws_no_ticket(table, drawn, waiting):
    for _ in range(3):
        table.append(ROWS)
    table.delete("id = 3")
    assert (drawn, waiting.exists()) == ([], False)


def test_who_loses_a_race_draws_a_ticket_and_gives_it_back(lake, table, drawn, waiting):
    stale = lake.load_table("t")
    table.append(ROWS)
    stale.append(ROWS)
    assert [name.split(".")[0] for name in drawn] == ["2"]  # the version it knew
    assert not waiting.exists()
    assert table.refresh().scan().count() == 30


def test_a_retry_with_a_ticket_does_not_sleep_first(lake, table, sleeps):
    stale = lake.load_table("t")
    table.append(ROWS)
    stale.append(ROWS)
    assert sleeps.count == []


def test_a_ticket_is_given_back_when_the_change_is_given_up(lake, table, drawn, waiting):
    stale = lake.load_table("t")
    table.append(ROWS)
    stage, bases = stale._pointer.stage, []

    def full_at_the_second_try(base, metadata):
        bases.append(base)
        if len(bases) > 1:
            assert waiting.exists()
            raise FileIOError("the disk is full", path="x")
        return stage(base, metadata)

    stale._pointer.stage = full_at_the_second_try
    with pytest.raises(FileIOError, match="full"):
        stale.append(ROWS)
    assert (len(drawn), waiting.exists()) == (1, False)
    assert table.refresh().scan().count() == 20


def test_those_with_a_ticket_go_first_and_in_the_order_of_their_numbers(table, waiting, sleeps):
    for name in ("7.b.1.x", "12.a.1.x"):
        (waiting / name).mkdir(parents=True)
    gone = []

    def ends(name):
        return lambda: (gone.append(name), (waiting / name).rmdir())

    sleeps.steps += [lambda: None, ends("7.b.1.x"), lambda: None, ends("12.a.1.x")]
    mine = tickets(table)
    with Holding() as held:
        waited = mine.let_pass(held)
        assert (waited, gone) == (True, ["7.b.1.x", "12.a.1.x"])
        # this one's number is 2: it is after the first of these, and the second is after it
        for name in ("1.a.1.x", "3.a.1.x"):
            (waiting / name).mkdir(parents=True)
        sleeps.steps += [lambda: None, ends("1.a.1.x")]
        assert mine.draw(2)
        assert gone[2:] == ["1.a.1.x"]
        left = sorted(path.name for path in waiting.iterdir())
        assert (len(left), left[0][:2], left[1]) == (2, "2.", "3.a.1.x")
    assert [path.name for path in waiting.iterdir()] == ["3.a.1.x"]


def test_nobody_comes_between_a_ticket_and_its_commit(table):
    log = []

    def second():
        with Holding() as held:
            waited = tickets(table).let_pass(held)
            log.append(("second", waited))

    first = tickets(table)
    thread = threading.Thread(target=second)
    with Holding() as held:
        waited = first.let_pass(held)
        assert not waited
        assert first.draw(2)
        thread.start()
        thread.join(0.2)
        assert log == []
        log.append("first")
    thread.join()
    assert log == ["first", ("second", True)]


def test_the_ticket_of_one_that_died_delays_one_commit_and_is_deleted(table, waiting, sleeps):
    (waiting / "1.gone.1.x").mkdir(parents=True)
    table.append(ROWS)
    assert sleeps.count
    assert not waiting.exists()
    sleeps.count.clear()
    table.append(ROWS)
    assert sleeps.count == []
    assert table.scan().count() == 30


def test_a_ticket_that_cannot_be_deleted_delays_one_commit(table, waiting, sleeps, monkeypatch):
    def denied(self, location):
        raise FileIOError(f"Cannot delete {location}: Permission denied", path=location)

    (waiting / "1.gone.1.x").mkdir(parents=True)
    monkeypatch.setattr(LocalFileSystem, "delete_folder", denied)
    table.append(ROWS)
    assert sleeps.count
    sleeps.count.clear()
    table.append(ROWS)
    assert sleeps.count == []


def test_two_that_take_a_dead_ticket_away_at_once_hinder_nobody(table, waiting):
    (waiting / "1.gone.1.x").mkdir(parents=True)
    entered = []
    both = threading.Barrier(2)

    def enter():
        mine = tickets(table, patience_s=0.05)
        both.wait()
        with Holding() as held:
            mine.let_pass(held)
            entered.append(mine.draw(2))

    threads = [threading.Thread(target=enter) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert entered == [True, True]
    assert not waiting.exists()


def test_a_folder_of_tickets_that_is_deleted_while_one_draws_is_made_again(
    table, waiting, monkeypatch
):
    make, made = LocalFileSystem.create_folder, []

    def overtaken(self, location):
        made.append(location)
        if len(made) == 1:
            raise NoSuchFileError(f"{waiting} does not exist", path=location)
        make(self, location)

    monkeypatch.setattr(LocalFileSystem, "create_folder", overtaken)
    mine = tickets(table)
    with Holding() as held:
        mine.let_pass(held)
        assert mine.draw(2)
        assert [f"{waiting}/{path.name}" for path in waiting.iterdir()] == made[1:]


def test_who_was_passed_over_while_it_committed_draws_anew(table, waiting, drawn):
    mine = tickets(table)
    with Holding() as held:
        mine.let_pass(held)
        assert mine.draw(2)
        assert mine.draw(2)
        assert len(drawn) == 1
        with Holding() as other:
            assert tickets(table, patience_s=0.05).let_pass(other)
        assert not waiting.exists()
        assert mine.draw(2)
        assert len(set(drawn)) == 2
    assert not waiting.exists()


@pytest.mark.parametrize("call", ["create_folder", "folders", "delete_folder", "is_folder"])
def test_without_permission_commits_go_on_as_without_turns(lake, table, monkeypatch, call):
    """A folder that shows nothing, or cannot be written to, as far as tickets are concerned."""
    real = getattr(LocalFileSystem, call)

    def denied(self, location):
        if WAITING in location or call == "is_folder":
            raise FileIOError(f"cannot {call} {location}: Permission denied", path=location)
        return real(self, location)

    mine = tickets(table)
    with Holding() as held:
        mine.let_pass(held)
        monkeypatch.setattr(LocalFileSystem, call, denied)
        assert mine.draw(2) is (call in {"folders", "delete_folder"})
    if call != "is_folder":
        stale = lake.load_table("t")
        table.append(ROWS)
        stale.append(ROWS)
        assert table.refresh().scan().count() == 30


def test_storage_that_fails_while_one_is_waited_for_fails_no_commit(table, waiting, monkeypatch):
    (waiting / "1.gone.1.x").mkdir(parents=True)

    def broken():
        raise FileIOError("no answer", path="x")

    with Holding() as held:
        waited = tickets(table, state=broken).let_pass(held)
        assert waited


def test_the_wait_ends_though_others_commit_all_the_time(table, waiting):
    (waiting / "1.slow.1.x").mkdir(parents=True)
    files = VersionFiles(table.io, table.location())
    states = iter(range(10_000_000))
    patience = Patience(lambda: next(states), 0, 0.1)
    with Holding() as held:
        waited = Tickets(table.io, files.folder, patience, 0.01).let_pass(held)
        assert waited
    assert [path.name for path in waiting.iterdir()] == ["1.slow.1.x"]


def test_a_table_that_was_dropped_does_not_get_its_folder_again(lake, table, tmp_path):
    mine = tickets(table)
    with Holding() as held:
        mine.let_pass(held)
        lake.drop_table("t", purge_requested=True)
        assert not mine.draw(2)
    assert not (tmp_path / "t").exists()
    with pytest.raises(NoSuchTableError):
        table.append(ROWS)


def test_other_names_among_the_tickets_are_nobodys(table, waiting, sleeps):
    for name in (".0123.tmp", "x.a.1.x", "5", "9" * 19 + ".a"):
        (waiting / name).mkdir(parents=True)
    (waiting / "1.file.1.x").write_text("")
    table.append(ROWS)
    assert sleeps.count == []


def test_a_ticket_outside_of_a_commit_is_not_drawn(table, drawn):
    assert not tickets(table).draw(2)
    assert not table._pointer.wait_in_queue(table._pointer.load())
    assert drawn == []


def test_the_pause_between_looks_is_as_long_as_is_said(tmp_path, sleeps):
    settings = {"lock.heartbeat-timeout-ms": "300", "lock.acquire-interval-ms": "20"}
    lake = load_catalog("lake", type="hadoop", warehouse=str(tmp_path), **settings)
    table = lake.create_table("t", ROWS.schema)
    (tmp_path / "t" / "metadata" / WAITING / "1.gone.1.x").mkdir(parents=True)
    table.append(ROWS)
    assert sleeps.count[:2] == [process_lock._FIRST_PAUSE_S, process_lock._FIRST_PAUSE_S * 1.25]
    assert max(sleeps.count) == 0.02


def test_a_host_of_any_name_can_draw(table, drawn, monkeypatch):
    monkeypatch.setattr(process_lock.socket, "gethostname", lambda: "a/b c:é" + "x" * 300)
    mine = tickets(table)
    with Holding() as held:
        mine.let_pass(held)
        assert mine.draw(2)
    assert drawn[0].startswith("2.abcxx")
    assert len(drawn[0]) < 128
