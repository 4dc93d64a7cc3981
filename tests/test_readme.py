"""What the README shows works as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from icecomb.catalog.cli.application import OK, run
from tests.environments import own_venv

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
FOLDER = "/tmp/lake"  # noqa: S108 - the name in the README, replaced by a folder of the test


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def shown(block: str) -> list[str]:
    """What a block says that it prints."""
    found = re.findall(r"^(?:print\(.*\)  |)# ([\[\d].*)", block, re.MULTILINE)
    assert found
    return found


def run_block(block: str, folder: Path, warehouse: Path, before: str = "") -> str:
    """What a block prints as a program of its own."""
    code = before + block.replace(FOLDER, str(warehouse))
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=folder, timeout=500
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def on_a_fresh_clone(command: str, folder: Path, seconds: int) -> str:
    """What a command line prints in a new clone of this repository, for a user who has nothing yet."""
    clone, home = folder / "clone", folder / "home"
    home.mkdir()
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)  # noqa: S607 - its place differs by system
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "JAVA_HOME") if key in os.environ}
    # which registry the machine has, and no more: not what its user has set up or kept
    kept |= {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_"))}
    (home / "tmp").mkdir()
    done = subprocess.run(
        ["/bin/sh", "-ec", command],
        check=False,
        capture_output=True,
        text=True,
        cwd=clone,
        env={**kept, "HOME": str(home), "TMPDIR": str(home / "tmp")},
        timeout=seconds,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_its_first_two_blocks_are_the_demo_and_the_gate() -> None:
    demo, gate, *_ = blocks("sh")
    assert demo.strip().endswith("/bin/icecomb demo")
    assert gate.strip() == "python3 -m tests"
    # CI runs that on a clean checkout
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == f"exec {gate.strip()}"
    first_screen = "\n".join(README.splitlines()[:20])
    assert demo in first_screen
    assert gate in first_screen


@pytest.mark.jvm
@pytest.mark.full("installs all anew, pyspark too")
def test_its_first_command_runs_on_a_fresh_clone_with_an_empty_home(tmp_path: Path) -> None:
    demo, *_ = blocks("sh")
    found = on_a_fresh_clone(demo, tmp_path, 1200)
    assert "flights" in found


@pytest.mark.jvm
@pytest.mark.full("makes the environment of the tests anew")
def test_its_second_command_runs_on_a_fresh_clone_with_an_empty_home(tmp_path: Path) -> None:
    _, gate, *_ = blocks("sh")
    found = on_a_fresh_clone(f"{gate.strip()} fast", tmp_path, 1800)
    assert "icecomb: PASSED" in found


@pytest.mark.full("installs each part anew")
@pytest.mark.parametrize("block", [2, 3])
def test_its_other_install_lines_bring_what_the_blocks_behind_them_import(
    tmp_path: Path, block: int
) -> None:
    line = blocks("sh")[block].strip()
    assert line.endswith("/bin/python")
    imported = "icecomb, pyarrow" if block == 2 else "icecomb.spark, pyspark"
    found = on_a_fresh_clone(f"{line} -c 'import {imported}; print(1)'", tmp_path, 900)
    assert found.splitlines()[-1] == "1"


def test_its_first_block_is_python_alone_without_java_spark_and_extras(tmp_path: Path) -> None:
    nothing_else = """
import os, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyspark", "duckdb", "pandas", "boto3"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
os.environ.pop("JAVA_HOME", None)
os.environ["PATH"] = "/nowhere"
"""
    taste, *_ = blocks("python")
    found = run_block(taste, tmp_path, tmp_path / "lake", nothing_else)
    assert found.splitlines() == shown(taste)
    assert ".metastore" not in {path.name for path in tmp_path.rglob("*")}


@pytest.mark.jvm
@pytest.mark.slow("starts a metastore and a Spark of its own, as its reader does")
def test_its_spark_block_runs_after_that_one(tmp_path: Path) -> None:
    from icecomb.catalog import metastore

    warehouse = tmp_path / "lake"
    taste, spark = blocks("python")
    run_block(taste, tmp_path, warehouse)
    try:
        found = run_block(spark, tmp_path, warehouse)
    finally:
        metastore.stop(warehouse)
    assert found.splitlines()[-1:] == shown(spark)


def test_its_commands_make_no_environment_that_the_tests_take_for_theirs() -> None:
    environments = set(re.findall(r"\.venv[\w-]*", "".join(blocks("sh"))))
    assert environments == {".venv-demo"}
    assert own_venv(Path("/nowhere")).name not in environments


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
    assert len(README.splitlines()) <= 125
    assert [line for line in README.splitlines() if len(line) > 120] == []
