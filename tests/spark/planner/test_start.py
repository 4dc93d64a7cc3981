"""How Spark's driver starts the planner: nothing of the folder that it runs in is imported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import icecomb.spark


def test_a_module_in_the_working_directory_is_not_run(tmp_path: Path) -> None:
    """As Python 3.10 does, which knows no PYTHONSAFEPATH."""
    (package,) = icecomb.spark.__path__
    source = Path(package, "bridge/java/org/icecomb/spark/planner/PlannerProcess.java").read_text()
    stated = re.search(r"String START =(.*?);\n\n", source, re.DOTALL)
    assert stated is not None
    code = "".join(re.findall(r'"(.*?)"', stated[1]))
    (tmp_path / "json.py").write_text("open('pwned', 'w').close()")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "not by hand" in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "pwned").exists()
