"""The statement that copies a Hive table which cannot be taken over into one that can."""

from __future__ import annotations

from icecomb.catalog.hive.thrift.entity import HiveTable


def copy_name(table: HiveTable) -> str:
    """The name of the copy, without its database."""
    return f"{table.name}_parquet"


def copy_statement(table: HiveTable) -> str:
    """A statement for Spark, ready to run in a session on this metastore."""
    source = f"{_quoted(table.database)}.{_quoted(table.name)}"
    target = f"{_quoted(table.database)}.{_quoted(copy_name(table))}"
    keys = ", ".join(_quoted(key.name) for key in table.partition_keys)
    parted = f" PARTITIONED BY ({keys})" if keys else ""
    return f"CREATE TABLE {target} USING parquet{parted} AS SELECT * FROM {source}"  # noqa: S608 - printed


def copy_remedy(table: HiveTable) -> str:
    """The remedy of a table whose rows must be copied."""
    return (
        f"copy it: run {copy_statement(table)} in Spark, then migrate "
        f"{table.database}.{copy_name(table)}"
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
