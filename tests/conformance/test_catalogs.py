"""Every catalog, by the same suite."""

from __future__ import annotations

import uuid

import pytest
from catalog_suite import CatalogSuite, StoreSuite

from icecomb.catalog import load_catalog


class TestHiveCatalog(CatalogSuite):
    """On the real metastore that the tests share."""


class _HiveVersion(CatalogSuite):
    version: str

    @pytest.fixture
    def catalog(self, hive_catalogs):
        return hive_catalogs[self.version]


class TestHive3Catalog(_HiveVersion):
    """On a real metastore 3.1.3, over Derby: it ignores expected values."""

    version = "3.1.3"


class TestHive4Catalog(_HiveVersion):
    """On a real metastore 4.0.1, over Postgres: it knows requests only."""

    version = "4.0.1"


class TestHadoopCatalog(CatalogSuite):
    """On a folder."""

    @pytest.fixture
    def catalog(self, tmp_path):
        return load_catalog("files", type="hadoop", warehouse=f"file://{tmp_path}/warehouse")


class TestHadoopCatalogOnS3(CatalogSuite):
    """In a bucket of an S3."""

    @pytest.fixture
    def catalog(self, s3):
        warehouse = f"s3://{s3.bucket()}/a warehouse"
        return load_catalog("files", type="hadoop", warehouse=warehouse, **s3.settings)


class TestHadoopCatalogOnHdfs(CatalogSuite):
    """On a folder of a real HDFS."""

    @pytest.fixture
    def catalog(self, hdfs):
        warehouse = f"{hdfs.uri}/warehouse/{uuid.uuid4().hex}"
        settings = {**hdfs.client_settings, "hdfs.user": "alice"}
        return load_catalog("files", type="hadoop", warehouse=warehouse, **settings)


class TestHadoopCatalogOnGoogle(StoreSuite):
    """On a bucket of Google's store: the catalog is the one above."""

    @pytest.fixture
    def catalog(self, google_store):
        warehouse = f"{google_store.place()}/warehouse"
        return load_catalog("files", type="hadoop", warehouse=warehouse, **google_store.settings)


class TestHadoopCatalogOnAzure(StoreSuite):
    """On a container of Azure's store: the catalog is the one above."""

    @pytest.fixture
    def catalog(self, azurite):
        warehouse = f"{azurite.place()}/warehouse"
        return load_catalog("files", type="hadoop", warehouse=warehouse, **azurite.settings)
