"""What the README shows works as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from icecomb.catalog.cli.application import OK, run

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
FOLDER = "/tmp/lake"  # noqa: S108 - the name in the README, replaced by a folder of the test


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.mark.jvm
@pytest.mark.slow("starts a metastore and a Spark of its own, as its reader does")
def test_its_python_blocks_run_one_after_the_other(tmp_path: Path) -> None:
    from icecomb.catalog import metastore

    warehouse = tmp_path / "lake"
    found = blocks("python")
    assert len(found) == 2
    outputs = []
    try:
        for block in found:
            code = block.replace(FOLDER, str(warehouse))
            done = subprocess.run(
                [sys.executable, "-c", code],
                check=False,
                capture_output=True,
                text=True,
                cwd=tmp_path,
                timeout=500,
            )
            assert done.returncode == 0, done.stderr
            outputs.append(done.stdout)
    finally:
        metastore.stop(warehouse)
    assert outputs[0].rstrip().endswith("3 5")
    assert "close" in outputs[1]
    assert "open" not in outputs[1]


def test_its_migration_commands_exist(capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^icecomb .*?(migrate \w+) ", "".join(blocks("sh")), re.MULTILINE)
    assert commands == [
        "migrate plan",
        "migrate apply",
        "migrate verify",
        "migrate revert",
        "migrate finalize",
    ]
    for command in commands:
        assert run([*command.split(), "--help"]) == OK
        assert f"Usage: icecomb {command}" in capsys.readouterr().out


def test_it_is_one_page_of_lines_that_fit_a_screen() -> None:
    assert len(README.splitlines()) <= 140
    assert [line for line in README.splitlines() if len(line) > 120] == []
