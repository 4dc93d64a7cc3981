"""The suites are modules of their own that the tests import."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("catalog_suite")
pytest.register_assert_rewrite("file_system_suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to `full` what a class of tests names in ``only_full``."""
    for item in items:
        left_out = getattr(getattr(item, "cls", None), "only_full", ())
        if not {item.name, getattr(item, "originalname", "")}.isdisjoint(left_out):
            item.add_marker(pytest.mark.full("the gate has it of another class"))
