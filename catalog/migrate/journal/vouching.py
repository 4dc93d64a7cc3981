"""Who vouches for a journal: the table's entry in the metastore, by a digest in its parameters.

Whoever may write to a table's folder may write a journal there, or exchange one, but not change the
metastore. An entry may have no digest: an older version migrated the table, or somebody re-created
the entry, or overwrote it with an old copy. Then a journal is compared with what the metastore
shows of the table. Where that contradicts it, or does not show enough, the administrator has to
look into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from icecomb.catalog.migrate.journal.file_history import MIGRATED_FROM
from icecomb.catalog.migrate.journal.journal import Journal, Step
from icecomb.catalog.migrate.source.partition_folders import DigestSet, digest
from icecomb.catalog.migrate.source.source import (
    classes_of,
    format_of,
    is_transactional,
    provider_of,
    spark_findings,
)
from icecomb.catalog.migrate.source.source_files import plain_folders
from icecomb.catalog.report.finding import Severity
from icecomb.format.errors import CorruptFileError, MigrationError, NoSuchFileError
from icecomb.format.property.table_property import MIGRATION_DIGEST

if TYPE_CHECKING:
    from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
    from icecomb.catalog.migrate.journal.context import MigrationContext

_PAGE: Final = 500
_PROVIDERS: Final = frozenset({"hive", "parquet", "orc", "avro"})
_UNCONFIRMED: Final = (
    "the table's entry does not confirm the journal: its columns, parameters and partitions cannot "
    "be compared with anything, and privileges on partitions would not be granted again"
)
_REMEDY: Final = (
    "Look into that folder: it is acted upon with your rights; `--trust-journal` "
    "(trust_journal=True) believes what is there."
)


def unconfirmed(context: MigrationContext, journal: Journal) -> str:
    """Return what nothing vouches for in a journal that may be acted upon; empty if all is."""
    return "" if journal.digests or context.trust_journal else _UNCONFIRMED


def check_not_exchanged(table: HiveTable, journal: Journal) -> None:
    """Check that a table's entry does not confirm another journal.

    Args:
        table: The current entry.
        journal: The journal.

    Raises:
        MigrationError: If it does.
    """
    if MIGRATION_DIGEST in table.parameters and not journal.digests:
        raise MigrationError(
            f"{journal.location} is not the journal of the migration of {table.full_name}: its "
            "entry in the metastore confirms another; nothing was touched",
            hint=f"Find out who changed it, and restore it from a backup. {_REMEDY}",
            table=table.full_name,
        )


def check_vouched(context: MigrationContext, table: HiveTable, journal: Journal) -> None:
    """Check that a journal may be acted upon.

    Args:
        context: The context of the table.
        table: The current entry.
        journal: The journal of its migration.

    Raises:
        MigrationError: If the entry confirms another journal, or none, and what the metastore shows
            contradicts this one.
    """
    if context.trust_journal or journal.digests:
        return
    check_not_exchanged(table, journal)
    if problem := next(_contradictions(context, table, journal), None):
        raise MigrationError(
            f"Nothing vouches for {journal.location}, the journal of the migration of "
            f"{table.full_name}: {problem}; nothing was touched",
            hint=_REMEDY,
            table=table.full_name,
        )


def check_moved(
    context: MigrationContext, table: HiveTable, journal: Journal, files: list[str]
) -> None:
    """Check that data files may be moved aside because a journal, or metadata, says so.

    Args:
        context: The context of the table.
        table: The current entry, of a Hive table.
        journal: The journal of its migration.
        files: The locations of the files.

    Raises:
        MigrationError: If there are some, and the entry does not show that it was migrated.
    """
    if not files or is_confirmed(context, table, journal):
        return
    raise MigrationError(
        f"Nothing vouches for {journal.location}, the journal of a migration of "
        f"{table.full_name}: {len(files)} files would be moved out of the Hive table that it says "
        f"were added since, such as {files[0]}; nothing was touched",
        hint=_REMEDY,
        table=table.full_name,
    )


def is_confirmed(context: MigrationContext, table: HiveTable, journal: Journal) -> bool:
    """Return whether a Hive table's entry, or the administrator, says that it was migrated."""
    shown = table.metadata_location == journal.marker
    return context.trust_journal or bool(journal.digests) or shown


def _contradictions(context: MigrationContext, table: HiveTable, journal: Journal) -> Iterator[str]:
    """Yield what is otherwise in a journal than the metastore shows, or not shown by it."""
    old, settings = journal.table, context.io.properties
    if old.owner != table.owner:
        yield f"it gives the table to {old.owner}, the metastore to {table.owner}"
    location, told = table.storage.location or "", old.storage.location or ""
    home, same, found = plain_folders(settings, [location, told, journal.home])
    if home != found:
        yield f"it is in {journal.home}, the table in {location}"
    if not journal.is_at_home:
        place = (journal.step(Step.PREPARED) or {})["metadata-location"]
        yield f"it names {place}, which is not in the table's folder of metadata"
    elif not _made_by_it(context, table, journal):
        yield "no snapshot of the table says that a migration made it"
    if home != same:
        yield f"it says that the table is in {told}, the metastore says {location}"
    shape, as_told = ((one.storage, one.partition_keys, one.table_type) for one in (table, old))
    if table.metadata_location == journal.marker and shape != as_told:
        yield "it has other columns, formats or keys than the metastore"
    if handler := old.parameters.get("storage_handler"):
        yield f"it says that the table's rows are kept by {handler}"
    if old.is_view or old.is_iceberg or is_transactional(old):
        yield "it says that the table is a view, transactional, or of Iceberg: none is migrated"
    # Spark keeps a table of its own under classes by which Hive does not read it.
    by_hive = (provider := provider_of(old)) == "hive"
    if provider not in _PROVIDERS:
        yield f"it says that Spark reads the table as {provider}"
    elif by_hive and format_of(old.storage) is None:
        yield f"it says that the table is read by {classes_of(old.storage)}"
    for finding in spark_findings(old, settings):
        if finding.severity is Severity.BLOCKER:
            yield f"it has a table of which {finding.message}"
    if not old.partition_keys:
        return
    present = _folders(context, context.partitions(table))
    shown = DigestSet(b"".join(digest(folder) for _, folder in present))
    outside, first = 0, ""
    for one, folder in _folders(context, journal.partitions()):
        if by_hive and format_of(one.storage) is None:
            values, classes = "/".join(one.values), classes_of(one.storage)
            yield f"it says that partition {values} is read by {classes}"
        if not (f"{folder}/".startswith(f"{home}/") or folder in shown):
            outside += 1
            first = first or one.storage.location or ""
    if outside:
        yield (
            f"it has {outside} partitions in folders of which the metastore does not say that they "
            f"are the table's: {first}"
        )


def _made_by_it(context: MigrationContext, table: HiveTable, journal: Journal) -> bool:
    """Return whether an Iceberg table has the snapshot of a migration."""
    from icecomb.format.spec.metadata_file import read_metadata

    prepared = journal.step(Step.PREPARED) or {}
    snapshot_id, first = prepared.get("snapshot-id"), prepared.get("metadata-location")
    if not table.is_iceberg or snapshot_id is None:
        return True
    for location in (table.metadata_location, first):
        try:
            found = read_metadata(context.io, location or "").snapshot_by_id(snapshot_id)
        except (NoSuchFileError, CorruptFileError):
            if location != first or table.metadata_location == first:
                return True  # what follows says that it is gone
            continue
        if found is not None:
            return MIGRATED_FROM in (found.summary or {})
    return False


def _folders(
    context: MigrationContext, partitions: Iterable[HivePartition]
) -> Iterator[tuple[HivePartition, str]]:
    """Yield partitions with the plain locations of their folders, but those without any."""
    left = (one for one in partitions if one.storage.location)
    while page := list(islice(left, _PAGE)):
        locations = [one.storage.location or "" for one in page]
        yield from zip(page, plain_folders(context.io.properties, locations), strict=True)
