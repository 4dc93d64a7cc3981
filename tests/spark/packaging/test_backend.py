"""The settings of the build, and what an editable install adds to that of setuptools."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from icecomb.catalog import java
from icecomb.spark.packaging import backend
from tests.environments import ROOT


def test_a_wheel_whose_jars_are_compiled_at_first_use_needs_no_spark_to_be_built() -> None:
    with_jars = backend.get_requires_for_build_wheel()
    assert [need for need in with_jars if need.startswith("pyspark")]
    assert backend.get_requires_for_build_wheel({"jars": "first-use"}) == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"jar": "first-use"}, "not jar"),
        ({"jars": "none"}, "can be first-use, not none"),
        ({"jars": "first-use", "spark": "/opt/spark"}, "leave spark=FOLDER out"),
    ],
)
def test_settings_that_a_wheel_does_not_know_are_refused(
    settings: dict[str, str], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        backend.get_requires_for_build_wheel(settings)


def test_a_path_is_added_to_a_wheel_with_its_record(tmp_path: Path) -> None:
    wheel = tmp_path / "any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("any.dist-info/RECORD", "any.dist-info/RECORD,,\n")
    backend._add_path(wheel, Path("/a/folder"))
    with zipfile.ZipFile(wheel) as archive:
        content = archive.read("icecomb.pth")
        *_, line = archive.read("any.dist-info/RECORD").decode().splitlines()
    assert content == b"/a/folder\n"
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    assert line == f"icecomb.pth,sha256={digest},{len(content)}"


@pytest.mark.full("builds wheels")
def test_pip_builds_the_same_wheel_of_the_same_files_at_any_time(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    wheels = []
    for mask in ("022", "077"):
        folder = tmp_path / mask
        tree = folder / "tree"
        shutil.copytree(
            ROOT, tree, ignore=shutil.ignore_patterns(".*", "build", "tests", "docs", "*.egg-info")
        )
        command = [*pip, "--config-settings=jars=first-use", "-w", str(folder), str(tree)]
        shell = ["sh", "-c", f'umask {mask} && exec "$@"', "sh", *command]
        for path in tree.rglob("*.py"):
            os.utime(path, (int(mask) * 10**7, int(mask) * 10**7))
        subprocess.run(shell, check=True, capture_output=True)
        wheels += folder.glob("*.whl")
    first, second = (wheel.read_bytes() for wheel in wheels)
    assert first == second
    with zipfile.ZipFile(wheels[0]) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    parts, git = (
        ["catalog", "format", "spark", "__init__.py", "py.typed"],
        shutil.which("git") or "",
    )
    known = subprocess.run(
        [git, "ls-files", "--cached", *parts],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert names == {f"icecomb/{name}" for name in known}


@pytest.mark.full("compiles Java twice")
def test_a_class_that_is_compiled_twice_makes_the_same_jar(tmp_path: Path) -> None:
    source = tmp_path / "One.java"
    source.write_text("final class One { static class Two {} }\n")
    made = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        java._compile(java.find_javac(), [source], "", tmp_path / name / "one.jar")
        made.append((tmp_path / name / "one.jar").read_bytes())
        time.sleep(2.1)  # an archive tells times of two seconds
    assert made[0] == made[1]
