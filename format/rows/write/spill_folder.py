"""Folders for what does not fit into memory; those of killed processes are removed."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

_NAME: Final = "icecomb-sort-{host}-{pid}-"
_OURS: Final = re.compile(r"icecomb-sort-(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]+)-[^/]+")


def new_spill_folder() -> Path:
    """Make a folder below `TMPDIR`, named after this process.

    Those that dead processes of this machine left there are removed first.

    Raises:
        OSError: It cannot be made.
    """
    place, host = Path(tempfile.gettempdir()), _host()
    for found in place.glob("icecomb-sort-*"):
        named = _OURS.fullmatch(found.name)
        if named is not None and named["host"] == host and not _is_alive(int(named["pid"])):
            shutil.rmtree(found, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=_NAME.format(host=host, pid=os.getpid())))


def _host() -> str:
    """This machine since it was started, and its numbering of processes: containers have their own.

    Several machines may share `TMPDIR`, and have one name.
    """
    known = [socket.gethostname()]
    with suppress(OSError):
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        known.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - no path
    return sha256(" ".join(known).encode()).hexdigest()[:8]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
