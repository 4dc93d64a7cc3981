"""What all tests of `format/` have in common."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def _no_waits_for_the_disk() -> Iterator[None]:
    """No test here takes the power away: that files are synced is asked of the calls themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield
