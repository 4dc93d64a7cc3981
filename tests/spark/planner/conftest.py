"""The planner without Spark, for the tests of its methods: its tables lie in folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from icecomb.catalog import load_catalog
from tests.spark.planner.protocol import NAMESPACE, Planner

if TYPE_CHECKING:
    from icecomb.catalog.hadoop.catalog import HadoopCatalog


def _catalog(folder: Path) -> Iterator[HadoopCatalog]:
    found = load_catalog("lake", type="hadoop", warehouse=str(folder))
    found.create_namespace(tuple(NAMESPACE))
    yield found
    found.close()


@pytest.fixture(scope="session")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HadoopCatalog]:
    """The catalog of `planner`, whose tests' tables are in one namespace."""
    yield from _catalog(tmp_path_factory.mktemp("planner"))


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[HadoopCatalog]:
    """A catalog for one test, which has a planner of its own: `Planner.in_folders`."""
    yield from _catalog(tmp_path)


@pytest.fixture(scope="session")
def planner(catalog: HadoopCatalog) -> Planner:
    """The planner, which has `catalog` open."""
    return Planner.in_folders(catalog)
