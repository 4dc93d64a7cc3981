"""Iceberg Java in a Spark of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.environments import ICEBERG_JAVA_VENV
from tests.peers.ivy import fetch
from tests.peers.s3a import file_io_jars
from tests.peers.spark_process import SparkProcess

if TYPE_CHECKING:
    from icecomb.catalog.metastore import RunningMetastore

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"


class IcebergJava(SparkProcess):
    """The reference implementation.

    Its catalogs ``ice`` and ``spark_catalog`` are on the shared metastore, ``ice_hadoop`` on the
    folder ``hadoop`` of the warehouse.
    """

    name = "Iceberg Java"

    def __init__(self, metastore: RunningMetastore, log: Path) -> None:
        warehouse = Path(metastore.warehouse).as_uri()
        catalog = "spark.sql.catalog.ice"
        extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        conf = {
            # with what its S3FileIO needs
            "spark.jars": ",".join(map(str, (fetch(RUNTIME), *file_io_jars()))),
            "spark.sql.extensions": extensions,
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type": "hive",
            f"{catalog}.uri": metastore.uri,
            f"{catalog}.warehouse": warehouse,
            f"{catalog}.cache-enabled": "false",
            "spark.sql.catalogImplementation": "hive",
            "spark.sql.warehouse.dir": warehouse,
            "spark.hadoop.hive.metastore.uris": metastore.uri,
            "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
            "spark.sql.catalog.spark_catalog.type": "hive",
            "spark.sql.catalog.spark_catalog.cache-enabled": "false",
            f"{catalog}_hadoop": "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}_hadoop.type": "hadoop",
            f"{catalog}_hadoop.warehouse": f"{warehouse}/hadoop",
            f"{catalog}_hadoop.cache-enabled": "false",
        }
        super().__init__(ICEBERG_JAVA_VENV, conf, metastore, log)

    def plan(self, table: str, where: str | None = None) -> dict[str, list[str]]:
        """The data files a scan of a table plans, and the delete files of each."""
        return dict(self._ask({"plan": table, "where": where}))

    def delete_by_values(
        self, table: str, columns: Sequence[str], where: str, file_format: str
    ) -> None:
        """Delete by an equality delete file what equals a row in some columns.

        Args:
            columns: Their names.
            where: A condition on them; the rows that match it now are the values.
            file_format: Of the delete file.
        """
        request = {"delete": table, "columns": list(columns), "where": where}
        self._ask({**request, "format": file_format})
