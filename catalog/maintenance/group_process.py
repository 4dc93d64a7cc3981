"""Other Python processes that rewrite groups, one group at a time each.

Small files are work for the interpreter, of which only one thread runs at a time. A process is
started by the interpreter of this one, in the same environment, without the program that runs here,
and ends with it: it then stops at the next point where nothing is half done, and removes its files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from multiprocessing import Pipe
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from icecomb.format.cancellation import Cancellation, cancellable, rest
from icecomb.format.errors import FileIOError, IcecombError, reason_of
from icecomb.format.maintenance.file_group import RewriteGroup

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from icecomb.format.storage.file_io import FileIO

G = TypeVar("G", bound=RewriteGroup[Any])
R = TypeVar("R")

_MEMORY: Final = 1 << 30
"""What a process may need."""
_LEAST_FILES: Final = 1_000
_LEAST_BYTES: Final = 1 << 30
"""A process starts in about a second: what is less than both is done sooner without."""
_PATIENCE_SECONDS: Final = 0.1
_END_SECONDS: Final = 30.0
_PROGRAM: Final = """
import sys
from multiprocessing.connection import Connection
connection = Connection(int(sys.argv[1]))
sys.path[:] = connection.recv()
from icecomb.catalog.maintenance.group_process import serve
serve(connection)
"""
_MEMORY_INFORMATION: Final = Path("/proc/meminfo")
_MEMORY_LIMITS: Final = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)
"""What a container may use and does use, by cgroups 2 and 1."""


def process_count(groups: Sequence[RewriteGroup[Any]], most: int, io: FileIO) -> int:
    """How many processes are worth it for some groups; 0 where threads do.

    As many as there are groups, cores and GiB of memory, where the work is not small.

    Args:
        groups: What is rewritten.
        most: How many groups may be rewritten at once.
        io: Where the files lie.
    """
    files = sum(len(group.tasks) for group in groups)
    if files < _LEAST_FILES and sum(group.size for group in groups) < _LEAST_BYTES:
        return 0
    room = _free_memory() // _MEMORY
    if room < 2:
        return 0
    count = min(len(groups), most, room, len(os.sched_getaffinity(0)))
    return count if count > 1 and sys.executable and io.is_portable else 0


class GroupProcesses(Generic[G, R]):
    """As many processes as wanted, each started when it is first needed; leaving ends them.

    Args:
        rewrite: What rewrites a group; it can be pickled.
        io: Where the files lie.
        count: How many processes there are at most.
    """

    def __init__(self, rewrite: Callable[[int, G, int], R], io: FileIO, count: int) -> None:
        self._task = rewrite, io
        self._ends = ExitStack()
        self._free: SimpleQueue[_Process | None] = SimpleQueue()
        for _ in range(count):
            self._free.put(None)

    def __enter__(self) -> GroupProcesses[G, R]:
        return self

    def __exit__(self, *raised: object) -> None:
        self._ends.close()

    def rewrite(self, number: int, group: G, workers: int) -> R:
        """Rewrite a group in a process that is free; waits for one.

        Raises:
            FileIOError: The process did not start, or ended.
            IcecombError: The group could not be rewritten.
        """
        process = self._free.get()
        try:
            if process is None or not process.is_alive:
                process = None
                process = _Process(self._task)
                self._ends.callback(process.end)
            found: R = process.answer((number, group, workers))
        finally:
            self._free.put(process)
        return found


class _Process:
    """One process."""

    def __init__(self, task: object) -> None:
        self._connection, other = Pipe()
        with other:
            command = [sys.executable, "-c", _PROGRAM, str(other.fileno())]
            try:
                # an interrupt of the terminal is for this process: it says what becomes of the work
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[other.fileno()],
                    start_new_session=True,
                )
            except OSError as error:
                self._connection.close()
                raise FileIOError(
                    f"A process that rewrites files did not start: {error}", hint=_HINT
                ) from error
        try:
            self._connection.send(sys.path)
            self._connection.send(task)
        except OSError as error:
            raise self._ended() from error

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def answer(self, job: object) -> Any:
        """What comes of a job; cancelled when the thread's work is."""
        wanted = True
        try:
            self._connection.send(job)
            while not self._connection.poll(_PATIENCE_SECONDS):
                if wanted and not rest(0):
                    self._connection.send(None)
                    wanted = False
            outcome = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._ended() from error
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def end(self) -> None:
        """End it; what it does is given up."""
        self._connection.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ended(self) -> FileIOError:
        self.end()
        code = self._process.returncode
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return FileIOError(f"A process that rewrote files ended {how}", hint=_HINT)


_HINT: Final = (
    "the system may have been short of memory: set option max-concurrent-file-group-rewrites to 1; "
    "remove-orphan-files finds the files that it may have left"
)


def serve(connection: Connection) -> None:
    """Rewrite the groups that are asked for, until nobody does; see `GroupProcesses`."""
    rewrite, io = connection.recv()
    wanted = Cancellation()
    jobs: SimpleQueue[Any] = SimpleQueue()

    def listen() -> None:
        try:
            with suppress(EOFError, OSError):
                while (job := connection.recv()) is not None:
                    jobs.put(job)
        finally:
            wanted.cancel()
            jobs.put(None)

    Thread(target=listen, name="icecomb-jobs", daemon=True).start()
    while (job := jobs.get()) is not None:
        with cancellable(wanted):
            try:
                outcome = rewrite(*job)
            except BaseException as error:  # noqa: BLE001 - it is raised by who asked
                outcome = error
        try:
            connection.send(_portable(outcome))
        except OSError:
            if not isinstance(outcome, BaseException):
                outcome.discard(io)
            break
    connection.close()


def _portable(outcome: object) -> object:
    """An error of a kind that the other process knows."""
    if not isinstance(outcome, BaseException) or isinstance(outcome, IcecombError):
        return outcome
    if isinstance(outcome, OSError):
        return FileIOError(reason_of(outcome))
    return RuntimeError(f"{type(outcome).__name__}: {outcome}")


def _free_memory() -> int:
    """How many bytes this process and its children may still take; 0 where nobody says."""
    found = []
    with suppress(OSError):
        lines = _MEMORY_INFORMATION.read_text(encoding="ascii").splitlines()
        found += [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    for limit, used in _MEMORY_LIMITS:
        with suppress(OSError, ValueError):  # "max" is no limit
            found.append(int(Path(limit).read_text("ascii")) - int(Path(used).read_text("ascii")))
    return min(found, default=0)
