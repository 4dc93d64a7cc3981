"""What the tests of maintenance share."""

from __future__ import annotations

from typing import Any

import pytest
from maintained_table import interrupting

from icecomb.format.maintenance.group_replacement import GroupReplacement
from icecomb.format.maintenance.group_rewriter import GroupRewriter


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has something happen after a group is rewritten, before that is committed."""
    return interrupting(monkeypatch, GroupRewriter)


@pytest.fixture
def overtaken(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has something happen between an attempt to commit groups and the next one."""
    return interrupting(monkeypatch, GroupReplacement, "apply")
