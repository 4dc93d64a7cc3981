"""No version of a library with a known hole can be chosen, nor is one installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires, version

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

MENDED = {
    "filelock": ("3.20.1", "CVE-2025-68146: a lock file that is a link truncates its target"),
    "pyarrow": ("14.0.1", "CVE-2023-47248: a file runs code when it is read"),
    "pyyaml": ("5.4", "CVE-2020-14343: a document runs code when it is read"),
    "requests": ("2.32.4", "CVE-2024-47081: .netrc for another host; CVE-2024-35195: no check"),
    "thrift": ("0.14", "CVE-2020-13949: a short message asks for much memory"),
    "urllib3": ("2.6.0", "CVE-2025-66418, CVE-2025-66471: a short answer unpacks to much memory"),
}
"""The first version without the holes that are known, and which these are."""


@pytest.mark.parametrize("name", MENDED)
def test_the_least_version_has_no_known_hole(name: str) -> None:
    found = [one for one in map(Requirement, requires("icecomb") or ()) if one.name.lower() == name]
    assert found
    for one in found:
        [least] = [Version(each.version) for each in one.specifier if each.operator in {">=", "=="}]
        assert least >= Version(MENDED[name][0]), MENDED[name][1]


@pytest.mark.parametrize("name", [*MENDED, "cryptography"])
def test_the_installed_version_has_no_known_hole(name: str) -> None:
    least = {name: good for name, (good, _) in MENDED.items()}
    least |= {"cryptography": "44.0.1"}  # CVE-2024-12797
    try:
        assert Version(version(name)) >= Version(least[name])
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
