"""A second table over the files of a Hive table, which is unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from icecomb.catalog.hive.engine import engine_names, engine_properties
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.identifier import database_and_table
from icecomb.catalog.migrate.applying.migration import (
    ROUNDS,
    MigrationBlockedError,
    file_mapping,
    given_properties,
    is_unchanged,
    keeps_changing,
)
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.migrate.journal.journal import PartitionPages
from icecomb.catalog.migrate.planning.migration_plan import MigrationPlan
from icecomb.catalog.migrate.planning.survey import plan_source
from icecomb.catalog.migrate.source.source import iceberg_properties
from icecomb.catalog.migrate.source.source_files import plain_folders
from icecomb.catalog.report.finding import Finding, warning
from icecomb.catalog.table.table_creation import CreateTableTransaction
from icecomb.format.errors import MigrationError, ValidationError
from icecomb.format.operation.append import FastAppend
from icecomb.format.spec.metadata import new_format_version
from icecomb.format.sql_statement import printed_name

_PURGE: Final = "external.table.purge"


@dataclass(frozen=True, slots=True)
class Snapshotted:
    """The new table; `files` is the number of data files shared with the Hive table."""

    table: str
    metadata_location: str
    files: int
    rows: int = 0
    findings: tuple[Finding, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "table": self.table,
            "metadata-location": self.metadata_location,
            "files": self.files,
            "rows": self.rows,
            "findings": [finding.to_json() for finding in self.findings],
        }


def make_snapshot(  # noqa: PLR0917 - see `icecomb.catalog.migrate.snapshot`
    context: MigrationContext,
    target: str | tuple[str, ...],
    choices: Choices,
    location: str | None,
    properties: Mapping[str, str] | None,
    threads: int,
    interop: str | Iterable[str] | None = None,
) -> Snapshotted:
    """Implement `icecomb.catalog.migrate.snapshot`."""
    given, engines = given_properties(properties), engine_names(interop)
    choices.check_version(new_format_version(given))
    home = _home(context, target, location)
    for _ in range(ROUNDS):
        table = context.entry.load()
        if table.is_iceberg:
            raise MigrationError(
                f"{table.full_name} is an Iceberg table already",
                hint="A tag keeps a state of it; CREATE TABLE ... AS SELECT copies it.",
                table=table.full_name,
            )
        if found := context.overwritten(table):
            raise found.error
        wanted = {**iceberg_properties(table), **given}
        wanted |= engine_properties(engines, wanted, context.settings)
        if table.storage.location:
            _check_apart(context, table.storage.location, home)
        with PartitionPages(context.client.partitions, table) as partitions:
            plan = plan_source(
                context.io,
                table,
                partitions.read(),
                choices,
                context.progress,
                threads=threads,
                properties=given,
            )
            if plan.blockers:
                raise MigrationBlockedError(plan)
            with _begun(context, target, plan, wanted, location) as transaction:
                if is_unchanged(context, table, plan, partitions, threads):
                    made = transaction.commit_transaction()
                    return Snapshotted(
                        ".".join(made.name()),
                        made.metadata_location,
                        len(plan.files),
                        plan.rows or 0,
                        tuple(_owner_findings(table)),
                    )
                transaction.abandon()
        context.progress.say(f"{table.full_name} was changed meanwhile: starting over")
    raise keeps_changing(context)


def _begun(
    context: MigrationContext,
    target: str | tuple[str, ...],
    plan: MigrationPlan,
    wanted: Mapping[str, str],
    location: str | None,
) -> CreateTableTransaction:
    """Return the uncommitted new table with its files."""
    mapping, last_column_id = file_mapping(plan)
    definition = replace(
        plan.definition({**wanted, "snapshot": "true"}, mapping, last_column_id),
        location=location and location.rstrip("/"),
    )
    draft = context.catalog.draft(database_and_table(target), definition)
    append = FastAppend(context.io, {"icecomb.snapshot-of": f"hive:{plan.table}"})
    append.append_encoded_files(plan.encoded)
    return CreateTableTransaction(draft).commit(append)


def _home(context: MigrationContext, target: str | tuple[str, ...], location: str | None) -> str:
    """Return the new table's folder; its name must not be taken."""
    entries, name = context.catalog.entries, database_and_table(target)
    entries.check_free(name)
    return location.rstrip("/") if location else entries.default_location(name)


def _owner_findings(table: HiveTable) -> Iterable[Finding]:
    """Yield a warning if dropping the Hive table deletes its files, which both tables share."""
    parameters = {key.lower(): value.lower() for key, value in table.parameters.items()}
    if parameters.get("external") == "true" and parameters.get(_PURGE) != "true":
        return
    name = printed_name(table.database, table.name)
    yield warning(
        "source-owns-files",
        f"DROP TABLE {name} would delete the files of both tables: Hive owns them",
        f"ALTER TABLE {name} SET TBLPROPERTIES ('EXTERNAL'='TRUE', '{_PURGE}'='false') in Hive "
        "keeps them",
    )


def _check_apart(context: MigrationContext, source: str, target: str) -> None:
    """Check that the two folders are apart: Hive would read the new files as rows."""
    folders = plain_folders(context.io.properties, (source, target))
    one, other = (f"{folder}/" for folder in folders)
    if one.startswith(other) or other.startswith(one):
        raise ValidationError(
            f"The new table cannot be in {target}: the Hive table is in {source}",
            hint="Give it a folder of its own.",
        )
