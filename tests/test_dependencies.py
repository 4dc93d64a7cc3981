"""No version of a library with a known hole can be chosen, nor is one installed."""

from __future__ import annotations

import re
import sys
from importlib.metadata import distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from icecomb.spark.packaging import backend
from tests.environments import OTHER_SPARKS, PEERS, ROOT, VENV, spark_venv

MENDED = {
    "filelock": ("3.20.3", "CVE-2025-68146, CVE-2026-22701: a lock file that is a link"),
    "pyarrow": ("14.0.1", "CVE-2023-47248: a file runs code when it is read"),
    "pyyaml": ("5.4", "CVE-2020-14343: a document runs code when it is read"),
    "requests": ("2.33", "CVE-2024-47081: .netrc for another host; CVE-2026-25645: planted files"),
    "thrift": ("0.14", "CVE-2020-13949: a short message asks for much memory"),
    "urllib3": ("2.7", "CVE-2025-66418, CVE-2026-21441: a short answer unpacks to much memory"),
}
"""The first version of icecomb's libraries without known holes, and which these are."""
OF_OTHERS = {
    "certifi": "2024.7.4",  # CVE-2024-39689
    "cryptography": "44.0.1",  # CVE-2024-12797
    "idna": "3.7",  # CVE-2024-3651
    "jinja2": "3.1.6",  # CVE-2025-27516
    "protobuf": "5.29.5",  # CVE-2025-4565
    "pygments": "2.15",  # CVE-2022-40896
    "pyjwt": "2.10.1",  # CVE-2024-53861
    "pyspark": "3.5",  # CVE-2023-22946
    "setuptools": "80.10.2",  # CVE-2025-47273, CVE-2026-24049
    "werkzeug": "3.1.4",  # CVE-2025-66221
}
"""The same of what these bring, and of what tests run."""
WITHOUT_HOLES = {**{name: least for name, (least, _) in MENDED.items()}, **OF_OTHERS}


@pytest.mark.parametrize("name", MENDED)
def test_the_least_version_has_no_known_hole(name: str) -> None:
    found = [one for one in map(Requirement, requires("icecomb") or ()) if one.name.lower() == name]
    assert found
    for one in found:
        [least] = [Version(each.version) for each in one.specifier if each.operator in {">=", "=="}]
        assert least >= Version(MENDED[name][0]), MENDED[name][1]


def test_what_builds_the_wheel_has_no_known_hole() -> None:
    recipe = (ROOT / "pyproject.toml").read_text()
    (least,) = set(re.findall(r'"setuptools>=([0-9.]+)"', recipe))
    assert Version(least) >= Version(OF_OTHERS["setuptools"])
    needed = map(Requirement, backend.get_requires_for_build_wheel())
    assert {str(one.specifier) for one in needed if one.name == "filelock"} == {
        f">={MENDED['filelock'][0]}"
    }


@pytest.mark.parametrize("pinned", [*PEERS.values(), *OTHER_SPARKS.values()])
def test_what_a_peer_is_made_of_has_no_known_hole(pinned: str) -> None:
    name, least = pinned.split("==")
    assert Version(least) >= Version(WITHOUT_HOLES.get(name, "0"))


@pytest.mark.parametrize(
    "venv",
    dict.fromkeys([Path(sys.prefix), VENV, *map(spark_venv, OTHER_SPARKS), *PEERS]),
    ids=lambda venv: venv.name,
)
def test_no_environment_has_a_version_with_a_known_hole(venv: Path) -> None:
    """One that nobody needed so far has none."""
    found = distributions(path=[str(each) for each in venv.glob("lib/python3*/site-packages")])
    installed = {one.name.lower().replace("_", "-"): one.version for one in found}
    assert bool(installed) == venv.exists()
    assert {
        name: version
        for name, version in installed.items()
        if Version(version) < Version(WITHOUT_HOLES.get(name, "0"))
    } == {}
