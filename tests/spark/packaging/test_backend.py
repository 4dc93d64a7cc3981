"""The settings of the build, and what an editable install adds to that of setuptools."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

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


@pytest.mark.full("builds a wheel")
def test_pip_builds_a_wheel_without_jars(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    command = [*pip, "--config-settings=jars=first-use", "-w", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert not [name for name in names if name.endswith(".jar")]
    assert [name for name in names if name.endswith("/IcecombCatalog.java")]
