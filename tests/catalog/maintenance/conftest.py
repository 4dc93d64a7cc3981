"""What the tests of maintenance share."""

from __future__ import annotations

from typing import Any

import pytest
from maintained_table import interrupting

from icecomb.format.maintenance.file_rewriter import FileRewriter
from icecomb.format.maintenance.rewrite_commit import RewriteCommit


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has something happen after a group is rewritten, before that is committed."""
    return interrupting(monkeypatch, FileRewriter)


@pytest.fixture
def overtaken(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has something happen between an attempt to commit groups and the next one."""
    return interrupting(monkeypatch, RewriteCommit, "apply")
