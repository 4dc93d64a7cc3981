"""Which tables names and patterns mean, in folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from icecomb.catalog.catalog import Catalog
from icecomb.catalog.health.selection import select_tables
from icecomb.format.errors import NoSuchTableError
from tests.catalog.health.made_table import SCHEMA, lake_in


@pytest.fixture
def lake(tmp_path: Path) -> Catalog:
    made = lake_in(tmp_path)
    for namespace in ("db.inner", "other", "empty"):
        made.create_namespace(namespace)
    for name in ("db.a", "db.b1", "db.b2", "db.inner.c", "other.a", "other.B"):
        made.create_table(name, SCHEMA)
    return made


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        (["db.a"], ["db.a"]),
        (["db.nope"], ["db.nope"]),
        (["db"], ["db.a", "db.b1", "db.b2"]),
        (["db.*"], ["db.a", "db.b1", "db.b2"]),
        (["db.b*", "db.a", "db.b1"], ["db.b1", "db.b2", "db.a"]),
        (["*.a"], ["db.a", "other.a"]),
        (["o*r.*"], ["other.B", "other.a"]),
        (["db.inner.*"], ["db.inner.c"]),
        (["db.*.c"], ["db.inner.c"]),
        (["*"], ["db.a", "db.b1", "db.b2", "db.inner.c", "other.B", "other.a"]),
        ([("db", "b1")], ["db.b1"]),
        (["other.b"], ["other.b"]),
    ],
)
def test_names_and_patterns_mean_tables(lake: Catalog, names: list[str], meant: list[str]) -> None:
    assert [".".join(found) for found in select_tables(lake, names)] == meant


@pytest.mark.parametrize("pattern", ["empty", "empty.*", "db.z*", "z*.a", "db.A*"])
def test_a_pattern_that_matches_nothing_is_an_error(lake: Catalog, pattern: str) -> None:
    with pytest.raises(NoSuchTableError, match="No Iceberg table matches"):
        select_tables(lake, [pattern])


def test_all_of_an_empty_catalog_is_nothing(tmp_path: Path) -> None:
    assert select_tables(lake_in(tmp_path / "new"), ["*"]) == ()
