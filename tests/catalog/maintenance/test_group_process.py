"""Groups that other processes rewrite: as this one would, whoever of them is interrupted or dies."""

from __future__ import annotations

import base64
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from maintained_table import (
    ALL,
    RandomTable,
    assert_numbers,
    data_on_disk,
    delete_by_value,
    files,
    frame,
    in_order,
    interrupting,
    new_table,
)

from icecomb.catalog import Table
from icecomb.catalog.maintenance import group_process
from icecomb.catalog.maintenance.compaction import RewriteRequest, rewrite_data_files
from icecomb.catalog.maintenance.group_process import GroupProcesses, process_count
from icecomb.format.cancellation import Cancellation, cancellable
from icecomb.format.errors import (
    CommitFailedError,
    CorruptFileError,
    FileIOError,
    NoSuchFileError,
    OperationCanceledError,
)
from icecomb.format.maintenance import row_origin
from icecomb.format.storage import file_io
from icecomb.format.storage.delegation_token import give_tokens
from icecomb.format.storage.file_io import FileIO
from tests.rings import sampled

SILENT = "sent nothing for 1 s"
PROCESSES = pytest.mark.gate("starts processes")
FULL = pytest.mark.full("both orders in memory and on the disk")
PAIRS = {**ALL, "max-file-group-input-files": "2"}
IN_PARTS = {**PAIRS, "partial-progress.enabled": "true"}
SLOW = """
import os, signal, time
from pathlib import Path
from icecomb.format.cancellation import check_wanted
from icecomb.format.maintenance.group_rewriter import GroupRewriter
folder, read = Path({folder!r}), GroupRewriter._read

def slow(self, *given):
    found = list(read(self, *given))
    yield from found
    {then}
    (folder / str(os.getpid())).touch()
    for _ in range(1200):
        time.sleep(0.05)
        check_wanted()
        yield from found

GroupRewriter._read = slow
"""
"""Every process imports it before anything else: it reads a file again and again for a minute."""
TOKEN = base64.urlsafe_b64encode(b"\x02id\x02pw\x04kind\x07service").decode()
"""Each part after its length, as Hadoop's `Token` writes itself."""
DYING = """
    try:
        (folder / "dies").touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Small work is worth two processes each time; what was started, by process id."""
    monkeypatch.setattr(group_process, "_LEAST_FILES", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    found: list[int] = []
    original = group_process._Process.__init__

    def begin(self: Any, task: object) -> None:
        original(self, task)
        found.append(self._process.pid)

    monkeypatch.setattr(group_process._Process, "__init__", begin)
    return found


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has something happen after a process has rewritten a group, before that is committed."""
    return interrupting(monkeypatch, GroupProcesses)


@pytest.fixture
def made(lake: Any) -> Table:
    """Four files, two groups."""
    return new_table(lake, *(frame(n, n + 1) for n in (1, 3, 5, 7)))


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Makes what processes do slow; each leaves its id in a folder when it has begun."""

    def set_to(then: str = "") -> Path:
        folder, code = tmp_path / "begun", tmp_path / "code"
        folder.mkdir()
        code.mkdir()
        text = SLOW.format(folder=str(folder), then=then)
        (code / "sitecustomize.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", str(code))
        return folder

    return set_to


def has_ended(pid: int) -> bool:
    """Whether there is no such process, or it only waits for who started it to look."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def in_file(table: Table, file: Any) -> list[int]:
    found: list[int] = pq.read_table(file.file_path.removeprefix("file:"))["id"].to_pylist()
    return found


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


@PROCESSES
@pytest.mark.parametrize("order", sampled(["id DESC", None, "zorder(id, s)"], keep=1))
def test_two_processes_rewrite_groups_and_end(made: Table, started: list[int], order: Any) -> None:
    made.delete("id = 4")
    delete_by_value(made, 5)
    done = made.maintenance.rewrite_data_files(sort_order=order, options=PAIRS)
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (4, 2)
    assert sorted(in_order(made)) == [1, 2, 3, 6, 7, 8]
    assert_numbers(made)
    assert len(set(started)) == 2
    assert all(map(has_ended, started))


@pytest.fixture
def small(lake: Any) -> Table:
    """One partition of eight files, which become four."""
    table = new_table(lake, *(frame(n, n + 1) for n in range(1, 17, 2)))
    size = sum(file.file_size_in_bytes for file in files(table)) // 4
    with table.update_properties() as change:
        change.set("write.target-file-size-bytes", str(size))
    return table


@PROCESSES
def test_the_files_of_one_partition_are_shared_out_between_processes(
    small: Table, started: list[int], meanwhile: Any
) -> None:
    delete_by_value(small, 5)
    meanwhile(lambda: small.refresh().delete("id in (2, 11)"))
    done = small.maintenance.rewrite_data_files(options=ALL)
    assert done.rewritten_data_files_count == 8
    assert len(set(started)) == 2
    added = [set(in_file(small, file)) for file in files(small)]
    assert len(added) == done.added_data_files_count
    assert all(rows <= set(range(1, 9)) or rows <= set(range(9, 17)) for rows in added)
    assert sorted(in_order(small)) == [1, 3, 4, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16]
    assert_numbers(small)


@pytest.mark.full(
    "processes of a large rewrite; the gate has their life, their errors and their deaths once"
)
@pytest.mark.parametrize(
    ("order", "options"),
    [
        ("id DESC", {}),
        (None, {"copy": "require"}),
        (None, {"max-concurrent-file-group-rewrites": "1"}),
    ],
    ids=["sorted", "copied", "one after another"],
)
def test_what_is_one_work_is_not_shared_out(
    small: Table, started: list[int], order: Any, options: dict[str, str]
) -> None:
    with small.update_properties() as change:
        change.set("icecomb.maintenance.copy-min-row-group-bytes", "1")
    small.maintenance.rewrite_data_files(sort_order=order, options=ALL | options)
    assert not started
    assert sorted(in_order(small)) == [*range(1, 17)]


def test_files_of_an_older_spec_are_not_shared_out(small: Table, started: list[int]) -> None:
    with small.update_spec() as change:
        change.add_field("id", "bucket[2]", "b")
    small.refresh().maintenance.rewrite_data_files(options=ALL)
    assert not started
    assert len({file.partition for file in files(small)}) == 2
    assert sorted(in_order(small)) == [*range(1, 17)]


@PROCESSES
@pytest.mark.parametrize(
    ("order", "memory"),
    [
        pytest.param(None, 64 << 20, id="in memory"),
        pytest.param(None, 0, id="on the disk", marks=FULL),
        pytest.param("id DESC", 64 << 20, id="sorted in memory", marks=FULL),
        pytest.param("id DESC", 0, id="sorted on the disk"),
    ],
)
def test_rows_that_others_delete_meanwhile_are_found_where_a_process_has_put_them(
    made: Table, meanwhile: Any, monkeypatch: Any, tmp_path: Path, order: Any, memory: int
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    text = "from icecomb.format.maintenance import row_origin\n"
    (code / "sitecustomize.py").write_text(f"{text}row_origin._IN_MEMORY = {memory}\n")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(code))
    monkeypatch.setenv("TMPDIR", str(temporary))
    meanwhile(lambda: made.refresh().delete("id in (2, 3, 8)"))
    made.maintenance.rewrite_data_files(sort_order=order, options=PAIRS)
    assert sorted(in_order(made)) == [1, 4, 5, 6, 7]
    assert len(files(made)) == 2
    assert list(temporary.iterdir()) == []


@pytest.mark.full(
    "processes of a large rewrite; the gate has their life, their errors and their deaths once"
)
def test_origins_on_the_disk_are_the_same_after_their_way_to_another_process(
    monkeypatch: Any, tmp_path: Path
) -> None:
    import pickle

    monkeypatch.setattr(row_origin, "_IN_MEMORY", 40)
    monkeypatch.setattr(row_origin.tempfile, "tempdir", str(tmp_path))
    origins = row_origin.RowOrigins()
    for number in range(3):
        keys = np.array([number * 100, number * 100 + 50], np.int64)
        origins.keep(SimpleNamespace(file_path=str(number)), keys, np.array([5, 5], np.int64))  # type: ignore[arg-type]
    copy = pickle.loads(pickle.dumps(origins))  # noqa: S301 - our own bytes
    assert list(tmp_path.iterdir()) == []
    asked = (), {0: np.array([3, 54, 102, 250])}
    found = [(file.file_path, rows.tolist()) for file, rows in copy.affected(*asked)]
    assert found == [("0", [3, 9]), ("1", [2]), ("2", [5])]
    origins.close()
    copy.close()


@PROCESSES
def test_errors_come_with_their_kind_their_hint_and_their_context(
    made: Table, started: list[int]
) -> None:
    damaged = Path(files(made)[2].file_path.removeprefix("file:"))
    damaged.write_bytes(b"PAR1" + bytes(damaged.stat().st_size - 8) + b"PAR1")
    before, on_disk = made.metadata_location, data_on_disk(made)
    with pytest.raises(CorruptFileError) as caught:
        made.maintenance.rewrite_data_files(options=PAIRS)
    assert caught.value.context["path"] == files(made)[2].file_path
    assert (made.refresh().metadata_location, data_on_disk(made)) == (before, on_disk)
    assert started
    done = made.maintenance.rewrite_data_files(options=IN_PARTS)
    assert (done.rewritten_data_files_count, done.failed_data_files_count) == (2, 2)


@PROCESSES
def test_a_process_that_dies_fails_its_group_and_another_one_takes_its_place(
    made: Table, slow: Any, started: list[int]
) -> None:
    made.append(frame(9))
    made.append(frame(10))
    slow(DYING)
    done = made.maintenance.rewrite_data_files(options=IN_PARTS)
    assert (done.rewritten_data_files_count, done.failed_data_files_count) == (4, 2)
    assert sorted(in_order(made)) == list(range(1, 11))
    assert all(map(has_ended, started))


@PROCESSES
def test_who_may_not_do_it_in_parts_is_told_that_a_process_died(made: Table, slow: Any) -> None:
    slow(DYING)
    before = made.metadata_location
    with pytest.raises(FileIOError, match="ended by signal 9") as caught:
        made.maintenance.rewrite_data_files(options=PAIRS)
    assert "max-concurrent-file-group-rewrites" in str(caught.value)
    assert made.refresh().metadata_location == before


@PROCESSES
def test_canceled_work_ends_and_leaves_nothing(made: Table, slow: Any, started: list[int]) -> None:
    begun, before, on_disk = slow(), made.metadata_location, data_on_disk(made)
    cancellation, raised = Cancellation(), list[BaseException]()

    def work() -> None:
        try:
            with cancellable(cancellation):
                made.maintenance.rewrite_data_files(options=PAIRS)
        except OperationCanceledError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    wait_for(lambda: len(list(begun.iterdir())) == 2)
    cancellation.cancel()
    thread.join(30)
    assert raised
    assert (made.refresh().metadata_location, data_on_disk(made)) == (before, on_disk)
    assert len(started) == 2
    assert all(map(has_ended, started))


@pytest.mark.full(
    "processes of a large rewrite; the gate has their life, their errors and their deaths once"
)
@PROCESSES
def test_an_interrupt_ends_it_and_leaves_nothing(made: Table, slow: Any) -> None:
    """As Ctrl-C, which a terminal sends to all processes of the program."""
    begun, on_disk = slow(), data_on_disk(made)
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            made.maintenance.rewrite_data_files(options=PAIRS)
        except KeyboardInterrupt:
            code = 7
        finally:
            os._exit(code)
    wait_for(lambda: len(list(begun.iterdir())) == 2)
    os.killpg(pid, signal.SIGINT)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert data_on_disk(made) == on_disk
    assert all(has_ended(int(each.name)) for each in begun.iterdir())


@pytest.mark.full(
    "processes of a large rewrite; the gate has their life, their errors and their deaths once"
)
@PROCESSES
def test_processes_end_and_remove_their_files_when_who_started_them_is_killed(
    made: Table, slow: Any
) -> None:
    begun, on_disk = slow(), data_on_disk(made)
    pid = os.fork()
    if pid == 0:
        try:
            made.maintenance.rewrite_data_files(options=PAIRS)
        finally:
            os._exit(99)
    wait_for(lambda: len(list(begun.iterdir())) == 2)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    wait_for(lambda: all(has_ended(int(each.name)) for each in begun.iterdir()))
    assert data_on_disk(made) == on_disk


@pytest.mark.seeds(4)
def test_whatever_others_do_meanwhile_rows_stay_as_they_make_them(
    lake: Any, seed: int, meanwhile: Any
) -> None:
    random = Random(seed)
    changed = RandomTable(lake, random)
    changed.change(random.randint(1, 4))
    lock = threading.Lock()

    def others() -> None:
        with lock:
            changed.change(random.randint(0, 2))

    meanwhile(*[others] * 4)
    options = {
        **ALL,
        "partial-progress.enabled": random.choice(["true", "false"]),
        "max-file-group-input-files": random.choice(["1", "2", "1000"]),
        "target-file-size-bytes": random.choice(["2000", "100000000"]),
        "use-starting-sequence-number": random.choice(["true", "true", "false"]),
    }
    order = random.choice([None, "k DESC, s", "zorder(k, u)"])
    changed.told.append(f"compaction {order} {options}")
    try:
        changed.load().maintenance.rewrite_data_files(sort_order=order, options=options)
    except CommitFailedError as error:
        changed.told.append(f"refused: {error}")
    changed.check()
    assert_numbers(changed.load())


def groups(count: int, files: int, size: int) -> Any:
    return [SimpleNamespace(tasks=(None,) * files, size=size)] * count


def test_there_are_as_many_processes_as_cores_memory_and_the_option_allow(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    monkeypatch.setattr(group_process, "_LEAST_FILES", 1_000)
    monkeypatch.setattr(group_process, "_free_memory", lambda: 40 << 30)
    assert process_count(groups(8, 500, 0), 5, FileIO()) == 5
    assert process_count(groups(1, 10_000, 0), 5, FileIO()) == 5
    assert process_count(groups(8, 10, 1 << 30), 5, FileIO()) == 5
    # small, one at a time
    assert process_count(groups(8, 10, 1 << 20), 5, FileIO()) == 0
    assert process_count(groups(8, 500, 0), 1, FileIO()) == 0
    monkeypatch.setattr(group_process, "_free_memory", lambda: (3 << 30) + 5)
    assert process_count(groups(8, 500, 0), 5, FileIO()) == 3
    monkeypatch.setattr(group_process, "_free_memory", lambda: 1 << 30)
    assert process_count(groups(8, 500, 0), 5, FileIO()) == 0
    monkeypatch.setattr(group_process, "_free_memory", lambda: 40 << 30)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    assert process_count(groups(8, 500, 0), 5, FileIO()) == 0


def test_a_file_system_of_this_process_keeps_the_work_in_it(
    made: Table, started: list[int]
) -> None:
    file_io.register_file_system("own", file_io._local)
    made.maintenance.rewrite_data_files(options=PAIRS)
    assert len(files(made)) == 2
    assert not started


def test_tokens_in_the_memory_of_this_process_keep_the_work_in_it() -> None:
    def count(sources: str) -> int:
        return process_count(groups(8, 500, 0), 5, FileIO({"hadoop.token.files": sources}))

    assert count(f"/a/file,{give_tokens('alice', [TOKEN])}") == 0
    # a planner's users have none where nothing is secured
    assert count(give_tokens("alice", [])) == 2
    assert count("/a/file") == 2


def test_the_limit_of_a_container_is_the_memory_there_is(monkeypatch: Any, tmp_path: Path) -> None:
    limit, used = tmp_path / "limit", tmp_path / "used"
    limit.write_text("3000\n")
    used.write_text("1000\n")
    monkeypatch.setattr(group_process, "_MEMORY_LIMITS", ((str(limit), str(used)),))
    assert group_process._free_memory() == 2000
    limit.write_text("max\n")
    assert group_process._free_memory() > 1 << 20
    with monkeypatch.context() as within:
        within.setenv("CONTAINER_ID", "container_1700000000000_0001_01_000001")
        assert group_process._free_memory() == 0
    monkeypatch.setattr(group_process, "_MEMORY_LIMITS", ())
    monkeypatch.setattr(group_process, "_MEMORY_INFORMATION", tmp_path / "none")
    assert group_process._free_memory() == 0
    monkeypatch.delattr(os, "sched_getaffinity")
    assert process_count(groups(8, 500, 0), 5, FileIO()) == 0


class Told:
    """Progress that keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    @contextmanager
    def task(self, *_: Any) -> Iterator[Callable[[int], None]]:
        yield lambda _: None

    def say(self, message: str) -> None:
        self.said.append(message)


def executable(folder: Path, text: str) -> str:
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("owner", "name", "value", "reason"),
    [
        (sys, "executable", "/no/python", "No such file"),
        (sys, "executable", "", "interpreter is built into"),
        (sys, "frozen", True, "interpreter is built into"),
        (sys, "executable", "exit 3", "it ended|Broken pipe|reset"),
        (sys, "executable", "exec sleep 99", SILENT),
        (sys, "getfilesystemencoding", lambda: "iso8859-1", "this is .*iso8859-1"),
        (group_process, "_STANDARD_ERRORS", 1 << 20, "are closed"),
    ],
    ids=["missing", "none", "frozen", "ends", "silent", "other names", "no standard output"],
)
def test_where_no_process_like_this_one_starts_threads_do_the_work_and_say_so(
    made: Table,
    started: list[int],
    monkeypatch: Any,
    tmp_path: Path,
    owner: Any,
    name: str,
    value: Any,
    reason: str,
) -> None:
    if reason == SILENT:
        monkeypatch.setattr(group_process, "_START_SECONDS", 1.0)
    told = Told()
    if isinstance(value, str) and value.startswith("ex"):
        value = executable(tmp_path, value)
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, value, raising=False)
        request = RewriteRequest(options=PAIRS)
        done = rewrite_data_files(made, request, dry_run=False, progress=told)
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (4, 2)
    assert sorted(in_order(made)) == list(range(1, 9))
    assert not started
    (said,) = {each for each in told.said if "threads rewrite" in each}
    assert re.search(reason, said)


@pytest.mark.full(
    "processes of a large rewrite; the gate has their life, their errors and their deaths once"
)
@PROCESSES
def test_modules_of_the_working_directory_are_not_taken_for_python_s(
    made: Table, monkeypatch: Any, tmp_path: Path, started: list[int]
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    for name in ("queue", "pickle", "socket"):
        (folder / f"{name}.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(folder)
    made.maintenance.rewrite_data_files(options=PAIRS)
    assert len(files(made)) == 2
    assert started


@pytest.mark.full(
    "processes of a large rewrite; the gate has their life, their errors and their deaths once"
)
@PROCESSES
def test_a_death_is_noticed_although_a_fork_holds_the_connection(
    made: Table, slow: Any, monkeypatch: Any
) -> None:
    slow(DYING)
    forks = []
    original, one_at_a_time = group_process.subprocess.Popen, threading.Lock()

    def begin(*given: Any, **options: Any) -> Any:
        with one_at_a_time:  # a fork would hold what another thread's beginning waits for
            pid = os.fork()
            if pid == 0:
                time.sleep(60)
                os._exit(0)
            forks.append(pid)
            return original(*given, **options)

    monkeypatch.setattr(group_process.subprocess, "Popen", begin)
    begun = time.monotonic()
    try:
        with pytest.raises(FileIOError, match="ended by signal 9"):
            made.maintenance.rewrite_data_files(options=PAIRS)
        assert time.monotonic() - begun < 40
    finally:
        for pid in forks:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@PROCESSES
def test_files_that_are_not_to_be_found_from_here_are_not_committed(
    made: Table, monkeypatch: Any
) -> None:
    before = made.metadata_location

    def size(self: FileIO, location: str) -> int:
        raise NoSuchFileError(f"{location} is elsewhere")

    monkeypatch.setattr(FileIO, "size", size)
    with pytest.raises(FileIOError, match="0 bytes here"):
        made.maintenance.rewrite_data_files(options=PAIRS)
    monkeypatch.undo()
    assert made.refresh().metadata_location == before
    assert sorted(in_order(made)) == list(range(1, 9))


@PROCESSES
def test_an_answer_that_cannot_be_sent_is_an_error_and_leaves_nothing(
    made: Table, monkeypatch: Any, tmp_path: Path
) -> None:
    code, temporary = tmp_path / "code", tmp_path / "tmp"
    code.mkdir()
    temporary.mkdir()
    (code / "sitecustomize.py").write_text(
        "from icecomb.format.maintenance import row_origin\n"
        "row_origin._IN_MEMORY = 0\n"
        "def full(*given):\n    raise OSError(28, 'No space left on device')\n"
        "row_origin.shutil.copyfileobj = full\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(code))
    monkeypatch.setenv("TMPDIR", str(temporary))
    on_disk = data_on_disk(made)
    with pytest.raises(FileIOError, match="No space left"):
        made.maintenance.rewrite_data_files(options=PAIRS)
    assert list(temporary.iterdir()) == []
    assert data_on_disk(made) == on_disk
