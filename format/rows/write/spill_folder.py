"""Folders for rows that do not fit into memory; those of dead processes are removed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from icecomb.format.process import has_ended, is_own, machine

_NAME: Final = "icecomb-sort-{host}-{pid}-"
_OURS: Final = re.compile(r"icecomb-sort-(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]+)-[^/]+")


def new_spill_folder() -> Path:
    """Create a folder below `TMPDIR`, named after this process.

    Folders that dead processes of this machine left there are removed first.
    """
    place, host = Path(tempfile.gettempdir()), machine()
    for found in place.glob("icecomb-sort-*"):
        named = _OURS.fullmatch(found.name)
        if named is not None and named["host"] == host and has_ended(int(named["pid"])):
            # another user's may be so deep that its removal ends in a RecursionError
            with suppress(OSError):
                if is_own(found.lstat()):
                    shutil.rmtree(found, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=_NAME.format(host=host, pid=os.getpid())))
