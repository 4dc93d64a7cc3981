"""What icecomb asks of DuckDB itself, of its version 2; there is no wheel of its extension for Iceberg."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.environments import DUCKDB_2, DUCKDB_2_VENV, ROOT, made

ASKING = [
    "catalog/table/test_merge.py",
    "catalog/table/test_frames.py",
    "catalog/table/test_arrow_layouts.py",
    "format/expressions/test_null_logic.py",
    "format/rows/test_variants.py",
    "format/rows/test_types_of_version_3.py",
    "catalog/maintenance/test_copied_groups.py",
    "interop/test_variants.py",
]
_VERSION = "import duckdb; print(duckdb.__version__)"


@pytest.mark.full("the gate asks the version that has the extension")
@pytest.mark.timeout(900)
def test_merges_relations_and_files_of_the_next_duckdb_are_right() -> None:
    [packages] = made(DUCKDB_2_VENV).glob("lib/python3*/site-packages")
    environment = {**os.environ, "PYTHONPATH": str(packages)}

    def run(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
        return done.stdout

    assert run("-c", _VERSION).strip() == DUCKDB_2.partition("==")[2]
    chosen = (f"tests/{each}" for each in ASKING)
    assert " passed" in run("-m", "pytest", "-q", "--ring", "gate", "--tb=short", *chosen)
