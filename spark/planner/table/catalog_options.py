"""Catalog options ``spark.sql.catalog.<name>.*``, under Iceberg's names.

Each is a catalog property, or Spark's own, or refused with a reason; options without an effect on
results are ignored. Unknown options are logged once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icecomb.format.errors import ConfigurationError
from icecomb.spark.conf import SESSION_CATALOG
from icecomb.spark.planner.protocol.catalogs import Environment
from icecomb.spark.planner.table.identity import of_others

DEFAULT_NAMESPACE: Final = "default-namespace"
_OVERRIDE: Final = "hadoop.hive.metastore.uris"
_CONVERTING: Final = ("parquet-enabled", "avro-enabled", "orc-enabled")
_OF_THE_BRIDGE: Final = frozenset({"python", DEFAULT_NAMESPACE, "use-nullable-query-schema"})
_PASSED_OVER: Final = frozenset(
    {
        *_CONVERTING,
        # every statement loads the current metadata: no table is cached that could be stale
        "cache-enabled",
        "cache.case-sensitive",
        "cache.expiration-interval-ms",
        # one pool serves one catalog of one user
        "client-pool-cache-keys",
        # of REST catalogs
        "rest-catalog-purge",
    }
)
_CLASSES: Final[Mapping[str, tuple[frozenset[str], str]]] = {
    "io-impl": (
        frozenset(
            {
                "org.apache.iceberg.hadoop.HadoopFileIO",
                "org.apache.iceberg.io.ResolvingFileIO",
                "org.apache.iceberg.aws.s3.S3FileIO",
            }
        ),
        "leave it out: files are found by their location, local, on HDFS or in an object store",
    ),
    "metrics-reporter-impl": (
        frozenset({"org.apache.iceberg.metrics.LoggingMetricsReporter"}),
        "leave it out, and look at the commits' summaries in the metadata table snapshots",
    ),
    "catalog-impl": (frozenset(), "say type=hive with a uri, or type=hadoop with a warehouse"),
    "encryption.kms-impl": (
        frozenset(),
        "leave it out: encrypted tables cannot be read or written",
    ),
}
"""Options that name Java classes: those whose behavior is built in, and the remedy for others."""


def catalog_properties(
    name: str, options: Mapping[str, str], environment: Environment
) -> dict[str, str]:
    """Return the catalog's properties, without Hadoop's (see `Environment.hadoop`).

    Without an address, the metastore is that of Spark's own Hive support, as in Iceberg Java; with
    neither that nor a type, the user's embedded one: a name not configured in Spark never gets
    here.
    """
    from icecomb.catalog.configuration.configuration import LOCAL, load_configuration

    _check_honoured(name, options)
    passed = _OF_THE_BRIDGE | _PASSED_OVER | _CLASSES.keys()
    properties = {key: value for key, value in options.items() if key not in passed}
    hadoop = of_others(environment.hadoop)
    settings = load_configuration(name, properties, hadoop=hadoop).settings
    kind = settings["type"].value.lower() if "type" in settings else None
    if "uri" not in settings and kind in {None, "hive"}:
        if environment.metastore_uris:
            properties["uri"] = environment.metastore_uris
        elif kind is None and name != SESSION_CATALOG:
            properties["type"] = LOCAL
    if name == SESSION_CATALOG:
        if _OVERRIDE in options:
            raise ConfigurationError(
                f"Catalog {name}: {_OVERRIDE} would be another metastore than that of Spark's own "
                "Hive support",
                hint="leave it out, or set spark.hadoop.hive.metastore.uris for both",
            )
        uri = properties.get("uri") or (settings["uri"].value if "uri" in settings else None)
        _check_is_sparks(kind, uri, environment)
    return properties


def strange_names(properties: Mapping[str, str]) -> list[str]:
    """List the properties unknown to icecomb and to the programs it knows of."""
    from icecomb.catalog.configuration.catalog_property import is_strange

    return sorted(filter(is_strange, properties))


def _check_honoured(name: str, options: Mapping[str, str]) -> None:
    for key, (same, instead) in _CLASSES.items():
        if (given := options.get(key)) is not None and given not in same:
            raise ConfigurationError(
                f"Catalog {name}: {key}={given} names a Java class, which icecomb cannot load",
                hint=instead,
            )
    for key in _CONVERTING:
        if name == SESSION_CATALOG and options.get(key, "false").strip().lower() != "false":
            kind = key.removesuffix("-enabled")
            raise ConfigurationError(
                f"Catalog {name}: {key}={options[key]} has no effect: Spark makes tables USING "
                f"{kind} itself, without asking the session catalog",
                hint=f"leave it out; write USING iceberg, or USING {kind} for plain {kind} files",
            )


def _check_is_sparks(kind: str | None, uri: str | None, environment: Environment) -> None:
    """Refuse two metastores behind one name; file-system catalogs have none."""
    if kind not in {None, "hive", "local"}:
        return
    sparks = environment.metastore_uris
    if uri is None or kind == "local":
        raise ConfigurationError(
            f"Catalog {SESSION_CATALOG}: nothing says where the metastore of Spark's own Hive "
            "support is",
            hint="set spark.hadoop.hive.metastore.uris and spark.sql.catalogImplementation=hive; "
            "`icecomb spark-conf --session-catalog` prints the lines",
        )
    if sparks and _addresses(uri).isdisjoint(_addresses(sparks)):
        raise ConfigurationError(
            f"Catalog {SESSION_CATALOG} is on the metastore {uri}, Spark's own Hive support on "
            f"{sparks}",
            hint=f"leave spark.sql.catalog.{SESSION_CATALOG}.uri out: it is the one of "
            "hive.metastore.uris then",
        )


def _addresses(uri: str) -> set[str]:
    return {each.strip().rstrip("/").lower() for each in uri.split(",")}
