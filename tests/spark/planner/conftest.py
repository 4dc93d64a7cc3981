"""The planner without Spark, for the tests of its methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.spark.planner.protocol import NAMESPACE, Planner

if TYPE_CHECKING:
    from icecomb.catalog.metastore import RunningMetastore


@pytest.fixture(scope="session")
def planner(metastore: RunningMetastore) -> Planner:
    """The planner on the shared metastore; its tests' tables are in one namespace."""
    planner = Planner(metastore)
    planner.ask("create_namespace", catalog=planner.catalog, namespace=NAMESPACE, properties={})
    return planner
