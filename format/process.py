"""Identity of processes and users of this machine, and whether processes have ended."""

from __future__ import annotations

import functools
import getpass
import os
import socket
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from icecomb.format.errors import ConfigurationError

UID_MAP: Final = Path("/proc/self/uid_map")
OVERFLOW_UID: Final = Path("/proc/sys/fs/overflowuid")


def machine() -> str:
    """Return an id of this machine since its last boot, and of its process numbering.

    Containers number their processes themselves, and several machines may have one name.
    """
    known = [socket.gethostname()]
    with suppress(OSError):
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        # start times are relative to the time namespace
        known.extend(os.readlink(f"/proc/self/ns/{each}") for each in ("pid", "time"))  # noqa: PTH115
    return sha256(" ".join(known).encode()).hexdigest()[:8]


def started_at(pid: int) -> int | None:
    """Return the start time of a process, in ticks since boot; None if it is unknown."""
    found = _stat(pid)
    return None if found is None else found[1]


def user_name() -> str:
    """Return the name of the user who runs this process: `HADOOP_USER_NAME`, else the system's."""
    if named := os.environ.get("HADOOP_USER_NAME"):
        return named
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:  # OSError from Python 3.13 on
        raise ConfigurationError(
            f"The system has no name for the user {os.getuid()} who runs this process",
            hint="Set HADOOP_USER_NAME to the name to act by.",
        ) from error


def is_own(status: os.stat_result) -> bool:
    """Return whether a file is this user's, or root's, who needs no file to act as this user."""
    return status.st_uid in {os.geteuid(), 0} - {_user_of_many(UID_MAP, OVERFLOW_UID)}


@functools.cache
def _user_of_many(uid_map: Path, overflow_uid: Path) -> int | None:
    """Return the number that stands for all users without one here, None where each has one.

    A process of a container may have that number, too; see user_namespaces(7).
    """
    try:
        known = uid_map.read_text(encoding="ascii").split()
        number = int(overflow_uid.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return None if known == ["0", "0", "4294967295"] else number


def is_alive(pid: int) -> bool:
    """Return whether this user has a process of this number."""
    try:
        os.kill(pid, 0)
        # root may signal the processes of others
        return os.geteuid() != 0 or is_own(Path(f"/proc/{pid}").stat())
    except FileNotFoundError:
        return True  # no /proc here
    except (OSError, OverflowError):
        return False


def has_ended(pid: int, started: int | None = None) -> bool:
    """Return whether a process of this machine has ended; False where that is not certain.

    Args:
        started: The start time that `started_at` returned for it: another process may have its
            number by now.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    found = _stat(pid)
    if started is None or found is None:
        return False
    return found[1] != started or (found[0] in {"X", "Z"} and _threads(pid) <= 1)


def _stat(pid: int) -> tuple[str, int] | None:
    """Return the state and the start time of a process; see proc_pid_stat(5)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # its name may have spaces and parentheses
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])


def _threads(pid: int) -> int:
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir()))
    except OSError:
        return 0
