"""The schema files of a Paimon table: `schema/schema-<N>` from 0 on, without gaps, immutable."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from icecomb.catalog.paimon.schema_change import SchemaChange, changed
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
    from icecomb.format.storage.file_io import FileIO

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
