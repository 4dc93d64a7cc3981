"""Lookup of Paimon tables by folder or, in a Hive metastore, by name."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from icecomb.catalog.identifier import database_and_table
from icecomb.catalog.paimon.schema_change import SchemaChange, changed
from icecomb.catalog.paimon.snapshot import Snapshots
from icecomb.catalog.paimon.table_schema import CURRENT_VERSION, TableSchema, read_table_schema
from icecomb.format.errors import (
    CommitFailedError,
    CorruptFileError,
    FileAlreadyExistsError,
    NoSuchFileError,
    NoSuchTableError,
    SchemaError,
    UnsupportedError,
)

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


_NAME: Final = re.compile(r"schema-(\d+)")
_ATTEMPTS: Final = 10


class SchemaFiles:
    """The schemas of one table, in the table's folder."""

    def __init__(self, io: FileIO, location: str) -> None:
        self._io = io
        self.location = location.rstrip("/")

    def path(self, schema_id: int) -> str:
        """Return the location of a schema file."""
        return f"{self.location}/schema/schema-{schema_id}"

    def ids(self) -> Sequence[int]:
        """Return the numbers of all schemas, ascending; `CorruptFileError` if there are gaps."""
        folder = f"{self.location}/schema"
        names = (status.location.rpartition("/") for status in self._io.list(folder))
        found = sorted(
            int(match[1])
            for parent, _, name in names
            if parent.rstrip("/").endswith("/schema") and (match := _NAME.fullmatch(name))
        )
        if not found:
            raise NoSuchTableError(
                f"There is no Paimon table at {self.location}: no schema file in {folder}",
                hint="Name the table's folder, the one that holds schema and snapshot.",
                path=self.location,
            )
        # the first gap: the name of one empty file may state any number
        missing = next((at for at, number in enumerate(found) if at != number), None)
        if missing is not None:
            path = self.path(missing)
            raise CorruptFileError(
                f"{path} is missing, though there is schema-{found[-1]}",
                hint="Restore it from a backup: data files written with it need it. Nothing was "
                "changed.",
                path=path,
            )
        return found

    def read(self, schema_id: int) -> TableSchema:
        """Read a schema."""
        path = self.path(schema_id)
        try:
            data = self._io.read(path)
        except NoSuchFileError as error:
            known = ", ".join(map(str, self.ids()))
            raise NoSuchFileError(
                f"There is no {path}", hint=f"There are the schemas {known}.", path=path
            ) from error
        return read_table_schema(data, path, schema_id)

    def latest(self) -> TableSchema:
        """Return the schema of the highest number; raises like `ids` and `read`."""
        return self.read(self.ids()[-1])

    def history(self) -> Sequence[TableSchema]:
        """Return all schemas, oldest first; raises like `ids` and `read`."""
        return [self.read(schema_id) for schema_id in self.ids()]

    def evolved(self, changes: Sequence[SchemaChange]) -> tuple[TableSchema, TableSchema]:
        """Return the latest schema and the changed schema, without writing anything."""
        base = self.latest()
        new = changed(base, changes, has_snapshots=self._has_snapshots())
        if replace(new, schema_id=base.schema_id).to_json() == base.to_json():
            raise SchemaError(
                f"{self.location}: the changes change nothing",
                hint="Nothing to do; give a change that differs from the schema.",
                path=self.location,
            )
        now = max(int(time.time() * 1000), base.time_millis)
        stamped = replace(
            new, schema_id=base.schema_id + 1, version=CURRENT_VERSION, time_millis=now
        )
        return base, stamped

    def evolve(self, changes: Sequence[SchemaChange]) -> TableSchema:
        """Create the next schema file, on top of other writers' schemas if they were first."""
        if not self._io.replaces_nothing(self.location):
            raise UnsupportedError(
                f"{self.location}: its store replaces objects although it is asked not to "
                "(If-None-Match: *): of two schemas created at once one would be lost",
                hint="Update the store's software, or change the schema by Paimon with a lock.",
                path=self.location,
            )
        for _ in range(_ATTEMPTS):
            _, new = self.evolved(changes)
            try:
                self._io.create(self.path(new.schema_id), new.to_text().encode())
            except FileAlreadyExistsError:
                continue
            return new
        raise CommitFailedError(
            f"{self.location}: other writers created a new schema first, {_ATTEMPTS} times",
            hint="Run it again.",
            path=self.location,
        )

    def _has_snapshots(self) -> bool:
        folder = f"{self.location}/snapshot"
        return any("/snapshot-" in status.location for status in self._io.list(folder))
