"""Every catalog, by the same suite."""

from __future__ import annotations

import uuid

import pytest
from catalog_suite import HOSTILE, CatalogSuite, StoreSuite

from icecomb.catalog import load_catalog

MAKING = "test_of_two_processes_making_one_table_one_wins"
PICKLED = {
    "test_a_pickled_table_works_in_another_process",
    "test_workers_read_the_tasks_of_a_pickled_scan",
}
ALLOWED = "local.allowed-prefixes"
"""A table of this machine is registered on other storage."""
OF_ANY_STORE = {name for name in dir(CatalogSuite) if name.startswith("test_")} - {
    "test_rows_appended_are_there_for_everybody",
    "test_a_stale_object_commits_on_what_others_did",
    "test_a_refused_change_leaves_nothing_behind",
    "test_purging_deletes_the_tables_files",
}
"""What depends little on how a store makes, lists and deletes files."""

HOSTILE_NAMES = {
    f"test_a_hostile_name_stays_in_its_namespace[{at}]" for at in range(len(HOSTILE)) if at % 3
}


class TestHiveCatalog(CatalogSuite):
    """On the real metastore that the tests share."""

    only_full = HOSTILE_NAMES


class _HiveVersion(CatalogSuite):
    version: str

    @pytest.fixture
    def catalog(self, hive_catalogs):
        return hive_catalogs[self.version]


@pytest.mark.full("needs Hive 3.1.3")
class TestHive3Catalog(_HiveVersion):
    """On a real metastore 3.1.3, over Derby: it ignores expected values."""

    version = "3.1.3"


@pytest.mark.full("needs Hive 4.0.1")
class TestHive4Catalog(_HiveVersion):
    """On a real metastore 4.0.1, over Postgres: it knows requests only."""

    version = "4.0.1"


class TestHadoopCatalog(CatalogSuite):
    """On a folder."""

    only_full = PICKLED | {MAKING}

    @pytest.fixture
    def catalog(self, tmp_path):
        return load_catalog("files", type="hadoop", warehouse=f"file://{tmp_path}/warehouse")


@pytest.mark.gate("over HTTP")
class TestHadoopCatalogOnS3(CatalogSuite):
    """In a bucket of an S3."""

    only_full = OF_ANY_STORE

    @pytest.fixture
    def catalog(self, s3, tmp_path):
        settings = {**s3.settings, ALLOWED: tmp_path.as_uri()}
        warehouse = f"s3://{s3.bucket()}/a warehouse"
        return load_catalog("files", type="hadoop", warehouse=warehouse, **settings)


class TestHadoopCatalogOnHdfs(CatalogSuite):
    """On a folder of a real HDFS."""

    only_full = OF_ANY_STORE

    @pytest.fixture
    def catalog(self, hdfs, tmp_path):
        warehouse = f"{hdfs.uri}/warehouse/{uuid.uuid4().hex}"
        settings = {**hdfs.client_settings, "hdfs.user": "alice", ALLOWED: tmp_path.as_uri()}
        return load_catalog("files", type="hadoop", warehouse=warehouse, **settings)


@pytest.mark.full("needs fake-gcs-server")
class TestHadoopCatalogOnGoogle(StoreSuite):
    """On a bucket of Google's store: the catalog is the one above."""

    @pytest.fixture
    def catalog(self, google_store, tmp_path):
        settings = {**google_store.settings, ALLOWED: tmp_path.as_uri()}
        warehouse = f"{google_store.place()}/warehouse"
        return load_catalog("files", type="hadoop", warehouse=warehouse, **settings)


@pytest.mark.full("needs Azurite")
class TestHadoopCatalogOnAzure(StoreSuite):
    """On a container of Azure's store: the catalog is the one above."""

    @pytest.fixture
    def catalog(self, azurite, tmp_path):
        settings = {**azurite.settings, ALLOWED: tmp_path.as_uri()}
        warehouse = f"{azurite.place()}/warehouse"
        return load_catalog("files", type="hadoop", warehouse=warehouse, **settings)
