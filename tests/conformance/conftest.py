"""The suite is a module of its own that the tests import."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("catalog_suite")
pytest.register_assert_rewrite("file_system_suite")
