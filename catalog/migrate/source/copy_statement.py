"""Statements that copy a Hive table that cannot be migrated into one that can."""

from __future__ import annotations

from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.source.hive_type import parse_hive_type
from icecomb.catalog.migrate.source.source import classes_of, format_of
from icecomb.format.errors import IcecombError
from icecomb.format.sql_statement import LEFT_OUT, is_whole, printed_name


def copy_name(table: HiveTable) -> str:
    """Return the name of the copy, without its database."""
    return f"{table.name}_parquet"


def copy_statement(table: HiveTable) -> str:
    """Return a statement for Spark, ready to run in a session on this metastore."""
    source = f"{printed_name(table.database, table.name)}"
    target = f"{printed_name(table.database, copy_name(table))}"
    keys = ", ".join(printed_name(key.name) for key in table.partition_keys)
    parted = f" PARTITIONED BY ({keys})" if keys else ""
    return f"CREATE TABLE {target} USING parquet{parted} AS SELECT * FROM {source}"  # noqa: S608 - printed


def hive_copy_statements(table: HiveTable) -> list[str]:
    """Return statements for Hive, as only Hive can read transactional tables and its handlers.

    The copy is external: some distributions of Hive 3 make every other table transactional. It is
    Parquet, whose timestamps have a zone as the default of a migration: those of ORC have none.
    """
    target = f"{printed_name(table.database, f'{table.name}_external')}"
    columns = ", ".join(
        f"{printed_name(one.name)} {printed_type(one.type)}" for one in table.storage.columns
    )
    keys = ", ".join(
        f"{printed_name(one.name)} {printed_type(one.type)}" for one in table.partition_keys
    )
    names = ", ".join(printed_name(one.name) for one in table.partition_keys)
    source = f"{printed_name(table.database, table.name)}"
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
    return (
        f"copy it in Hive: {statements}{left_out_note(statements)}; then migrate "
        f"{table.database}.{table.name}_external"
    )


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
    statement = copy_statement(table)
    return (
        f"copy it: run {statement} in Spark{left_out_note(statement)}, then migrate "
        f"{table.database}.{copy_name(table)}; to keep the name, run {_renaming(table)} before, "
        f"and migrate {table.full_name}"
    )


def _renaming(table: HiveTable) -> str:
    """Return the statements that give the copy the name that others know."""
    source, copy, kept = (
        printed_name(table.database, name)
        for name in (table.name, copy_name(table), f"{table.name}_old")
    )
    return f"ALTER TABLE {source} RENAME TO {kept} and ALTER TABLE {copy} RENAME TO {source}"


def printed_type(text: str) -> str:
    """Return a type for a statement that is printed; `LEFT_OUT` for what is not surely one.

    Hive looks at the first word of a type only, so that an owner can have it say anything.
    """
    try:
        parse_hive_type(text)
    except IcecombError:
        return LEFT_OUT
    return text if is_whole(text) else LEFT_OUT


def left_out_note(statement: str) -> str:
    """Return what to do about the `LEFT_OUT` in a statement; empty if it has none."""
    if LEFT_OUT not in statement:
        return ""
    return f" (for {LEFT_OUT} write the name or type: what the metastore has could end a statement)"
