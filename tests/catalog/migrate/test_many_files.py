"""How much memory the migration of many files takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("many_files.py")


def migrated(folder: Path, partitions: int, files: int) -> dict[str, Any]:
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), str(partitions), str(files)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(done: dict[str, Any], partitions: int) -> None:
    """All that is there was planned and written, and each file read once."""
    files, rows = 2 * partitions, 20 * partitions
    assert (done["partitions"], done["files"], done["rows"]) == (partitions, files, rows)
    assert (done["verdict"], done["same"]) == ("ready", True)
    assert done["footers"] == files
    summary = done["summary"]
    assert (summary["added-data-files"], summary["added-records"]) == (str(files), str(rows))
    assert summary["changed-partition-count"] == str(partitions)


@pytest.mark.gate("starts a process")
def test_each_file_is_read_once(tmp_path: Path) -> None:
    check(migrated(tmp_path / "some", 1000, 2), 1000)


@pytest.mark.full("100,000 files")
def test_memory_does_not_grow_with_files_and_each_is_read_once(tmp_path: Path) -> None:
    few, many = (migrated(tmp_path / str(count), count, 2) for count in (10_000, 50_000))
    check(many, 50_000)
    # The objects of 80,000 files and 40,000 partitions were 180 MB.
    assert many["memory_mb"] - few["memory_mb"] < 60
