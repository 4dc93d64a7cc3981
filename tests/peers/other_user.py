"""Files of another user of this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SOMEBODY = 61002


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a file, or a link, another user's; who is not root is taken for another user instead."""
    if os.geteuid():
        monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
    else:
        os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)
