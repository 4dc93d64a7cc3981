"""Other Python processes that rewrite groups, one group at a time each.

Small files are work for the interpreter, which runs only one thread at a time. A process is
started by this one's interpreter, in the same environment, but without the running program, and
ends with it: it then stops at the next point where nothing is half done, and removes its files.
Where no process starts, or it differs from this one, threads of this process do the work.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from multiprocessing import Pipe
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from queue import SimpleQueue
from threading import BoundedSemaphore, Lock, Thread
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from icecomb.format.cancellation import Cancellation, cancellable, check_wanted, rest
from icecomb.format.errors import FileIOError, IcecombError, NoSuchFileError
from icecomb.format.maintenance.file_group import RewriteGroup

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.storage.file_io import FileIO

_MEMORY: Final = 1 << 30
"""Bytes that a process may need."""
_LEAST_FILES: Final = 1_000
_LEAST_BYTES: Final = 1 << 29
"""A process starts in about a second: less work than both is done sooner without."""
_PATIENCE_SECONDS: Final = 0.1
_START_SECONDS: Final = 30.0
_END_SECONDS: Final = 30.0
THREADS: Final = 2
"""Groups at once in this process, at most: each takes about 400 MiB."""
_STANDARD_ERRORS: Final = 2
_PROGRAM: Final = """
import sys
sys.path[:] = [folder for folder in sys.path if folder]
from multiprocessing.connection import Connection
connection = Connection(int(sys.argv[1]))
sys.path[:] = connection.recv()
from icecomb.catalog.maintenance.group_process import serve
from icecomb.format.printable_text import logged_to
with logged_to(sys.stderr):
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
"""A container's memory limit and use, by cgroups 2 and 1."""
_YARN: Final = "CONTAINER_ID"
"""Set in containers of YARN, which kills them beyond a limit that is unknown here."""


def process_count(groups: Sequence[RewriteGroup[Any]], most: int, io: FileIO) -> int:
    """Return how many processes are worth their start for some groups; 0 to use threads.

    As many as there are cores and GiB of memory, unless the work is small.
    """
    files = sum(len(group.tasks) for group in groups)
    if files < _LEAST_FILES and sum(group.size for group in groups) < _LEAST_BYTES:
        return 0
    room = _free_memory() // _MEMORY
    if room < 2:
        return 0
    count = min(most, room, len(os.sched_getaffinity(0)))
    return count if count > 1 and io.is_portable else 0


class Rewritten(Protocol):
    """A group whose new files are written, but in no table yet."""

    @property
    def group(self) -> RewriteGroup[Any]:
        """The files that were read."""

    @property
    def files(self) -> Sequence[DataFile]:
        """The files that were written."""

    def release(self) -> None:
        """Release resources needed only by the commit."""

    def discard(self, io: FileIO) -> None:
        """Delete the new files."""


G = TypeVar("G", bound=RewriteGroup[Any])
R = TypeVar("R", bound=Rewritten)


class GroupProcesses(Generic[G, R]):
    """Processes up to a number, each started when first needed; leaving the context ends them.

    Args:
        rewrite: Rewrites a group; it can be pickled.
        say: Called with the reason if threads do the work.
    """

    def __init__(
        self,
        rewrite: Callable[[int, G, int], R],
        io: FileIO,
        count: int,
        say: Callable[[str], None],
    ) -> None:
        self._rewrite = rewrite
        self._io = io
        self._say = say
        self._ends = ExitStack()
        self._free: SimpleQueue[_Process | None] = SimpleQueue()
        self._here = BoundedSemaphore(THREADS)
        self._do_start = True
        self._saying = Lock()
        for _ in range(count):
            self._free.put(None)

    def __enter__(self) -> GroupProcesses[G, R]:
        return self

    def __exit__(self, *raised: object) -> None:
        self._ends.close()

    def rewrite(self, number: int, group: G, workers: int) -> R:
        """Rewrite a group in a free process; wait for one."""
        process = self._free.get()
        try:
            if process is None or not process.is_alive:
                process = self._started()
            if process is None:
                with self._here:
                    return self._rewrite(number, group, workers)
            found: R = process.answer((number, group, workers))
        finally:
            self._free.put(process)
        self._check(found)
        return found

    def _started(self) -> _Process | None:
        if not self._do_start:
            return None
        try:
            process = _Process((self._rewrite, self._io))
        except _NotStartedError as error:
            with self._saying:
                if not self._do_start:
                    return None
                self._do_start = False
            self._say(f"threads rewrite: a process did not start by {sys.executable}: {error}")
            return None
        self._ends.callback(process.end)
        return process

    def _check(self, found: R) -> None:
        """Check the files: a process may reach another storage by the same names."""
        for file in found.files:
            try:
                size = self._io.size(file.file_path)
            except NoSuchFileError:
                size = -1
            if size != file.file_size_in_bytes:
                found.release()
                raise FileIOError(
                    f"{file.file_path} differs from what its writing process reported: it has "
                    f"{max(size, 0)} bytes here, {file.file_size_in_bytes} there",
                    hint="settings of the storage changed while this program runs; set option "
                    "max-concurrent-file-group-rewrites to 1",
                    path=file.file_path,
                )


class _NotStartedError(Exception):
    """A process like this one cannot be started."""


class _Process:
    """A process that rewrites groups; `_NotStartedError` if it is not like this one."""

    def __init__(self, task: object) -> None:
        self._connection, other = Pipe()
        with other:
            try:
                self._process = subprocess.Popen(
                    [*_interpreter(other.fileno()), "-c", _PROGRAM, str(other.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[other.fileno()],
                    # an interrupt of the terminal is for this process, which handles it
                    start_new_session=True,
                )
            except OSError as error:
                self._connection.close()
                raise _NotStartedError(str(error)) from error
        try:
            self._connection.send(sys.path)
            self._meet()
            self._connection.send(task)
        except (EOFError, OSError) as error:
            self._kill()
            raise _NotStartedError(str(error) or "it ended") from error
        except BaseException:
            self._kill()
            raise

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def answer(self, job: object) -> Any:
        """Return the result of a job; it is canceled when the thread's work is."""
        wanted = True
        try:
            self._connection.send(job)
            while not self._has_answer():
                if wanted and not rest(0):
                    self._connection.send(None)
                    wanted = False
            answer = self._connection.recv_bytes()
        except (EOFError, OSError) as error:
            raise self._ended() from error
        outcome = ForkingPickler.loads(answer)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def end(self) -> None:
        """End the process; its current job is abandoned."""
        with suppress(OSError):
            # forks of this process may hold the connection, so that it would look open
            self._connection.send(None)
        self._connection.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _meet(self) -> None:
        """Wait for the process's first message, which tells whether it is like this one."""
        end = time.monotonic() + _START_SECONDS
        while not self._has_answer():
            check_wanted()
            if time.monotonic() > end:
                raise OSError(f"it sent nothing for {_START_SECONDS:.0f} s")
        there, here = self._connection.recv(), _identity()
        if there != here:
            raise OSError(f"it is {there}, this is {here}")

    def _has_answer(self) -> bool:
        """Wait a moment and return whether there is an answer; the end is one.

        `EOFError` tells that it has ended, although forks keep its connection open.
        """
        was_alive = self.is_alive
        if self._connection.poll(_PATIENCE_SECONDS):
            return True
        if not was_alive:
            raise EOFError
        return False

    def _kill(self) -> None:
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def _ended(self) -> FileIOError:
        self.end()
        code = self._process.returncode
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return FileIOError(f"A process that rewrote files ended {how}", hint=_HINT)


def _interpreter(descriptor: int) -> list[str]:
    """Return the command of another process like this one, which inherits a descriptor."""
    if descriptor <= _STANDARD_ERRORS:
        raise OSError("standard input, output or errors are closed")
    if not sys.executable or getattr(sys, "frozen", False):
        raise OSError("the interpreter is built into this program")
    flags = ["-I"] if sys.flags.isolated else ["-E"] if sys.flags.ignore_environment else []
    return [sys.executable, *flags, "-X", f"utf8={sys.flags.utf8_mode}"]


def _identity() -> tuple[str, ...]:
    """Return what must be equal in both: how objects and names of files are encoded."""
    return sys.version, sys.getfilesystemencoding()


_HINT: Final = (
    "the system may have been short of memory: set option max-concurrent-file-group-rewrites to 1; "
    "remove-orphan-files finds the files that it may have left"
)


def serve(connection: Connection) -> None:
    """Rewrite the requested groups until the requests end; see `GroupProcesses`."""
    parent = os.getppid()
    connection.send(_identity())
    rewrite, io = connection.recv()
    wanted = Cancellation()
    jobs: SimpleQueue[Any] = SimpleQueue()

    def listen() -> None:
        try:
            with suppress(EOFError, OSError):
                # forks of the parent may keep the connection open when it is dead
                while os.getppid() == parent:
                    if connection.poll(_PATIENCE_SECONDS):
                        if (job := connection.recv()) is None:
                            break
                        jobs.put(job)
        finally:
            wanted.cancel()
            jobs.put(None)

    Thread(target=listen, name="icecomb-jobs", daemon=True).start()
    while (job := jobs.get()) is not None:
        with cancellable(wanted):
            try:
                outcome = rewrite(*job)
            except BaseException as error:  # noqa: BLE001 - it is raised by the parent
                outcome = error
        try:
            answer = ForkingPickler.dumps(_portable(outcome))
        except BaseException as error:  # noqa: BLE001 - as above
            _discard(outcome, io)
            outcome = error
            answer = ForkingPickler.dumps(_portable(error))
        try:
            connection.send_bytes(answer)
        except OSError:
            _discard(outcome, io)
            break
    connection.close()


def _discard(outcome: Any, io: FileIO) -> None:
    if not isinstance(outcome, BaseException):
        outcome.discard(io)


def _portable(outcome: object) -> object:
    """Convert an error to a type that the other process knows."""
    if not isinstance(outcome, BaseException) or isinstance(outcome, IcecombError | OSError):
        return outcome
    return RuntimeError(f"{type(outcome).__name__}: {outcome}")


def _free_memory() -> int:
    """Return the bytes that this process and its children may still use; 0 if unknown."""
    if _YARN in os.environ:
        return 0
    found = []
    with suppress(OSError):
        lines = _MEMORY_INFORMATION.read_text(encoding="ascii").splitlines()
        found += [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    for limit, used in _MEMORY_LIMITS:
        with suppress(OSError, ValueError):  # "max" means no limit
            found.append(int(Path(limit).read_text("ascii")) - int(Path(used).read_text("ascii")))
    return min(found, default=0)
