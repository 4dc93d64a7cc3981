"""Files that cannot be deleted, as where their folder may not be written to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def stick(patch: pytest.MonkeyPatch, is_stuck: Callable[[str], bool]) -> None:
    """Let nobody delete the files of these paths."""
    unlink = os.unlink

    def failing(path: Any, *, dir_fd: int | None = None) -> None:
        above = "" if dir_fd is None else Path(f"/proc/self/fd/{dir_fd}").readlink()
        if is_stuck(str(Path(above, path))):
            raise PermissionError(13, "Permission denied")
        unlink(path, dir_fd=dir_fd)

    patch.setattr(os, "unlink", failing)
