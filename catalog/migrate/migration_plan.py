"""What a plan of a migration is: a value, which nothing has to be asked for any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from icecomb.catalog.finding import blocker
from icecomb.catalog.migrate.footer import Footer
from icecomb.catalog.migrate.source_files import Place, PlaceFiles
from icecomb.catalog.takeover import TakeoverPlan
from icecomb.format.errors import IcecombError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.storage.file_system import FileStatus

FAILED: Final = "not-planned"
"""The code of the blocker of a table that could not be looked at."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to be taken over.

    Attributes:
        place: its partition.
        status: its location and size.
        footer: what its footer says; None when footers were not read.
    """

    place: Place
    status: FileStatus
    footer: Footer | None = None


@dataclass(frozen=True, slots=True)
class MigrationPlan(TakeoverPlan):
    """What would be done to one table.

    Attributes:
        partitions: how many partitions are taken over.
        files: the files to be taken over.
        listed: all that was found in the folders of the table.
        seconds: about how long apply takes, from how long looking took and, where not all footers
            were read, from those that were; None when none was.
    """

    partitions: int
    files: tuple[SourceFile, ...]
    listed: tuple[PlaceFiles, ...] = ()
    seconds: float | None = None

    @property
    def verdict(self) -> str:
        """In a word: ``ready``, ``blocked``, or ``failed`` where it could not be looked at."""
        codes = {finding.code for finding in self.blockers}
        return "failed" if FAILED in codes else "blocked" if codes else "ready"

    @property
    def rows(self) -> int | None:
        """How many rows the files hold, None when footers were not read."""
        counts = [_rows(file.footer) for file in self.files]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def data_files(self) -> Iterator[DataFile]:
        """The files as manifests will have them, as far as footers were read."""
        for file in self.files:
            if file.footer is not None and file.footer.data_file is not None:
                yield file.footer.data_file

    @property
    def size(self) -> int:
        """How many bytes the files have."""
        return sum(file.status.size for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """The plan for programs."""
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
    """The plan of a table that could not be looked at: its one blocker says why."""
    if isinstance(error, IcecombError):
        message, remedy = error.message, error.hint
    else:
        message, remedy = f"{type(error).__name__}: {error}", None
    finding = blocker(FAILED, message, remedy or f"icecomb doctor {table} looks at its entry")
    return MigrationPlan(table, "", Schema(), UNPARTITIONED_PARTITION_SPEC, (finding,), 0, ())


def _rows(footer: Footer | None) -> int | None:
    return None if footer is None or footer.data_file is None else footer.data_file.record_count
