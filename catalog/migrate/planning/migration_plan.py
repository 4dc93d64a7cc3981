"""A migration plan: an immutable, self-contained value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from icecomb.catalog.migrate.planning.planned_files import PlannedSourceFiles
from icecomb.catalog.migrate.source.partition_folders import FolderStates
from icecomb.catalog.report.finding import blocker
from icecomb.catalog.table.takeover import TakeoverPlan
from icecomb.format.errors import IcecombError, MigrationError
from icecomb.format.manifests.encoded_file import DataFileForm, EncodedFiles
from icecomb.format.rows.values.unread_field import UnreadField
from icecomb.format.shell_command import shell_command
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema

FAILED: Final = "not-planned"
"""The code of the blocker of a table that could not be examined."""
ALREADY: Final = "already-iceberg"
"""The code of the note about a table that is an Iceberg table already."""


@dataclass(frozen=True, slots=True)
class MigrationPlan(TakeoverPlan):
    """The plan of one table's migration.

    Attributes:
        partitions: Number of partitions taken over.
        files: The files to take over.
        folder_states: The state of the folders when they were listed; None without folders.
        form: The encoding of the files for manifests; None if none was examined.
        spellings: The distinct spellings of columns in files.
        unread: The fields of files that the table lacks, each once.
        seconds: Estimated duration of apply, from that of planning and, if not all footers were
            read, from those that were; None if none was.
    """

    partitions: int
    files: PlannedSourceFiles
    folder_states: FolderStates | None = None
    form: DataFileForm | None = None
    spellings: tuple[Mapping[int, str], ...] = ()
    unread: tuple[UnreadField, ...] = ()
    seconds: float | None = None

    @property
    def verdict(self) -> str:
        """The verdict.

        ``ready``, ``blocked``, ``already`` of an Iceberg table, or ``failed`` if the table could
        not be examined.
        """
        codes = {finding.code for finding in self.findings}
        if ALREADY in codes:
            return "already"
        return "failed" if FAILED in codes else "blocked" if self.blockers else "ready"

    @property
    def rows(self) -> int | None:
        """Number of rows in the files; None if footers were not read."""
        return self.files.rows

    @property
    def encoded(self) -> EncodedFiles:
        """The files encoded for manifests.

        Raises:
            MigrationError: If their footers were not read.
        """
        if self.form is None:
            raise MigrationError(f"The files of {self.table} were not read", hint="Plan again.")
        return self.files.encoded(self.form)

    @property
    def size(self) -> int:
        """Total size of the files in bytes."""
        return self.files.size

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "table": self.table,
            "location": self.location,
            "verdict": self.verdict,
            "blocked": bool(self.blockers),
            "partitions": self.partitions,
            "files": len(self.files),
            "bytes": self.size,
            "rows": self.rows,
            "seconds": None if self.seconds is None else round(self.seconds, 1),
            "schema": self.schema.to_json(),
            "partition-spec": self.spec.to_json(),
            "findings": [finding.to_json() for finding in self.findings],
        }


def failed_plan(table: str, error: Exception) -> MigrationPlan:
    """Return the plan of a table that could not be examined: its one blocker says why."""
    if isinstance(error, IcecombError):
        message, remedy = error.message, error.hint
    else:
        message, remedy = f"{type(error).__name__}: {error}", None
    finding = blocker(
        FAILED, message, remedy or f"{shell_command('doctor', table)} examines its entry"
    )
    return MigrationPlan(
        table, "", Schema(), UNPARTITIONED_PARTITION_SPEC, (finding,), 0, PlannedSourceFiles()
    )
