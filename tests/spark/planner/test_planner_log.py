"""What the planner writes to the driver's standard error."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
from icecomb.format.storage.file_io import FileIO
from icecomb.spark.planner.__main__ import _log_to_stderr

_log_to_stderr()
place = "webhdfs://127.0.0.1:1/x"
try:
    settings = {"warehouse": place, "dfs.client.failover.max.attempts": "1"}
    FileIO({"hdfs.delegation-token": "bWFya2Vy", **settings}).read(place)
except Exception as error:
    print(error)
"""


@pytest.mark.full("starts a Python with all of the planner")
def test_a_name_node_that_is_down_is_no_traceback_with_the_token() -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert "no active name node" in found.stdout
    assert "bWFya2Vy" not in found.stdout + found.stderr
    assert "Traceback" not in found.stderr
