"""How much memory the migration of many files takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

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


def test_memory_does_not_grow_with_files_and_each_is_read_once(tmp_path: Path) -> None:
    few, many = (migrated(tmp_path / str(count), count, 2) for count in (10_000, 50_000))
    assert (many["partitions"], many["files"], many["rows"]) == (50_000, 100_000, 1_000_000)
    assert (many["verdict"], many["same"]) == ("ready", True)
    assert many["footers"] == [100_000, 0]
    summary = many["summary"]
    assert (summary["added-data-files"], summary["added-records"]) == ("100000", "1000000")
    assert summary["changed-partition-count"] == "50000"
    # The objects of 80,000 files and 40,000 partitions were 180 MB.
    assert many["memory_mb"] - few["memory_mb"] < 60
