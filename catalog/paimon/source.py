"""Lookup of Paimon tables by folder or, in a Hive metastore, by name."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icecomb.catalog.identifier import database_and_table
from icecomb.catalog.paimon.schema_files import SchemaFiles
from icecomb.catalog.paimon.snapshot import Snapshots
from icecomb.format.errors import NoSuchTableError

if TYPE_CHECKING:
    from icecomb.catalog.hive.catalog import HiveCatalog
    from icecomb.catalog.hive.thrift.entity import HiveTable
    from icecomb.format.storage.file_io import FileIO


_HANDLER: Final = "org.apache.paimon.hive.PaimonStorageHandler"
_INPUT_FORMAT: Final = "org.apache.paimon.hive.mapred.PaimonInputFormat"


@dataclass(frozen=True, slots=True)
class PaimonSource:
    """A Paimon table.

    Attributes:
        name: The table's name in messages.
        entry: The metastore's entry; None for a table named by its folder.
    """

    name: str
    io: FileIO
    location: str
    entry: HiveTable | None = None

    @property
    def schemas(self) -> SchemaFiles:
        """The table's schema files."""
        return SchemaFiles(self.io, self.location)

    @property
    def snapshots(self) -> Snapshots:
        """The table's snapshots."""
        return Snapshots(self.io, self.location)


def is_paimon(table: HiveTable) -> bool:
    """Return whether an entry says that it is a Paimon table (Paimon: HiveCatalog)."""
    return not table.is_view and (
        table.parameters.get("table_type", "").lower() == "paimon"
        or table.parameters.get("storage_handler") == _HANDLER
        or table.storage.input_format == _INPUT_FORMAT
    )


def find_table(catalog: HiveCatalog, identifier: str) -> PaimonSource:
    """Return a Paimon table by its name."""
    table = catalog.client.table(*database_and_table(identifier))
    if not is_paimon(table) or not table.storage.location:
        raise NoSuchTableError(
            f"{table.full_name} is {table.kind}, not a Paimon table",
            hint="icecomb paimon tables lists them.",
            table=table.full_name,
        )
    return PaimonSource(table.full_name, catalog.io, table.storage.location, table)


def list_tables(catalog: HiveCatalog, database: str) -> list[HiveTable]:
    """Return the Paimon tables of a database, by name."""
    names = catalog.client.table_names(database)
    if not names:
        catalog.client.database(database)
    found = catalog.client.tables(database, names)
    return sorted(filter(is_paimon, found), key=lambda table: table.name)


@dataclass(frozen=True, slots=True)
class SchemaUse:
    """The references to a schema.

    Attributes:
        users: What refers to it, such as `snapshot 3`; empty if nothing does.
    """

    schema_id: int
    users: tuple[str, ...]


def schema_use(files: SchemaFiles, snapshots: Snapshots) -> list[SchemaUse]:
    """Return the references to each schema: as latest, by snapshots, tags, manifests, files."""
    users: dict[int, dict[str, None]] = defaultdict(dict)
    numbers = files.ids()
    users[numbers[-1]]["the latest"] = None
    seen: set[str] = set()
    for snapshot in snapshots.retained():
        name = snapshot.location.rsplit("/", 1)[-1]
        users[snapshot.schema_id][name] = None
        for manifest, schema_id in snapshots.manifests(snapshot):
            if manifest in seen:
                continue
            seen.add(manifest)
            users[schema_id][f"a manifest of {name}"] = None
            for _, entry in snapshots.entries(manifest):
                users[entry.schema_id][f"data files of {name}"] = None
    return [SchemaUse(number, tuple(users[number])) for number in numbers]
