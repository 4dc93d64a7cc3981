"""Engines that are too old for a format version."""

from __future__ import annotations

import pytest

from icecomb.catalog.configuration.catalog_property import too_old_engines


@pytest.mark.parametrize(
    ("engines", "version", "told"),
    [
        (("hive", "spark", "trino", "impala"), 3, "hive before 4.2 and impala before 5"),
        (("impala",), 3, "impala before 5"),
        (("spark", "trino"), 3, ""),
        (("hive", "impala"), 2, ""),
        (("hive", "impala"), 1, ""),
    ],
)
def test_hive_and_impala_read_version_3_from_some_versions_on(
    engines: tuple[str, ...], version: int, told: str
) -> None:
    assert too_old_engines(engines, version) == told
