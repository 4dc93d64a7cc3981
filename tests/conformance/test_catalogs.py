"""Every catalog, by the same suite."""

from __future__ import annotations

import pytest
from catalog_suite import CatalogSuite

from icecomb.catalog import load_catalog


@pytest.mark.jvm
class TestHiveCatalog(CatalogSuite):
    """On the real metastore that the tests share."""


class TestHadoopCatalog(CatalogSuite):
    """On a folder."""

    @pytest.fixture
    def catalog(self, tmp_path):
        return load_catalog("files", type="hadoop", warehouse=f"file://{tmp_path}/warehouse")
