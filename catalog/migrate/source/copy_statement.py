"""Statements that copy a Hive table that cannot be migrated into one that can."""

from __future__ import annotations

from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.source.source import classes_of, format_of


def copy_name(table: HiveTable) -> str:
    """Return the name of the copy, without its database."""
    return f"{table.name}_parquet"


def copy_statement(table: HiveTable) -> str:
    """Return a statement for Spark, ready to run in a session on this metastore."""
    source = f"{quoted(table.database)}.{quoted(table.name)}"
    target = f"{quoted(table.database)}.{quoted(copy_name(table))}"
    keys = ", ".join(quoted(key.name) for key in table.partition_keys)
    parted = f" PARTITIONED BY ({keys})" if keys else ""
    return f"CREATE TABLE {target} USING parquet{parted} AS SELECT * FROM {source}"  # noqa: S608 - printed


def hive_copy_statements(table: HiveTable) -> list[str]:
    """Return statements for Hive, as only Hive can read transactional tables and its handlers.

    The copy is external: some distributions of Hive 3 make every other table transactional. It is
    Parquet, whose timestamps have a zone as the default of a migration: those of ORC have none.
    """
    target = f"{quoted(table.database)}.{quoted(f'{table.name}_external')}"
    columns = ", ".join(f"{quoted(one.name)} {one.type}" for one in table.storage.columns)
    keys = ", ".join(f"{quoted(one.name)} {one.type}" for one in table.partition_keys)
    names = ", ".join(quoted(one.name) for one in table.partition_keys)
    source = f"{quoted(table.database)}.{quoted(table.name)}"
    insert = f"INSERT INTO TABLE {target}" + (f" PARTITION ({names})" if names else "")
    return [
        f"CREATE EXTERNAL TABLE {target} ({columns})"
        + (f" PARTITIONED BY ({keys})" if keys else "")
        + " STORED AS PARQUET",
        *(["SET hive.exec.dynamic.partition.mode=nonstrict"] if keys else []),
        f"{insert} SELECT * FROM {source}",  # noqa: S608 - printed
    ]


def hive_copy_remedy(table: HiveTable) -> str:
    """Return the remedy for a table that only Hive can read."""
    statements = "; ".join(hive_copy_statements(table))
    return f"copy it in Hive: {statements}; then migrate {table.database}.{table.name}_external"


def copy_remedy(table: HiveTable) -> str:
    """Return the remedy for a table whose rows must be copied.

    Spark reads every table with a SerDe of such a name by its own Parquet and ORC readers, every
    file of it (RelationConversions): files that other classes leave out would be in the copy.
    """
    serde = (table.storage.serde or "").lower()
    if format_of(table.storage) is None and ("parquet" in serde or "orc" in serde):
        return (
            f"copy it by what knows these classes ({classes_of(table.storage)}), as Hive does, or "
            "Hudi's own source in Spark, and migrate the copy: Spark's reader of Hive tables would "
            "take every file"
        )
    return (
        f"copy it: run {copy_statement(table)} in Spark, then migrate "
        f"{table.database}.{copy_name(table)}; to keep the name, run {_renaming(table)} before, "
        f"and migrate {table.full_name}"
    )


def _renaming(table: HiveTable) -> str:
    """Return the statements that give the copy the name that others know."""
    source, copy, kept = (
        f"{quoted(table.database)}.{quoted(name)}"
        for name in (table.name, copy_name(table), f"{table.name}_old")
    )
    return f"ALTER TABLE {source} RENAME TO {kept} and ALTER TABLE {copy} RENAME TO {source}"


def quoted(name: str) -> str:
    """Quote a name for Hive and Spark."""
    return "`" + name.replace("`", "``") + "`"
