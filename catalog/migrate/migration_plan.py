"""What a plan of a migration is: a value, which nothing has to be asked for any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from icecomb.catalog.finding import blocker
from icecomb.catalog.migrate.place_list import SeenPlaces
from icecomb.catalog.migrate.planned_files import PlannedFiles
from icecomb.catalog.takeover import TakeoverPlan
from icecomb.format.errors import IcecombError, MigrationError
from icecomb.format.manifests.encoded_file import DataFileForm, EncodedFiles
from icecomb.format.rows.unread_field import UnreadField
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema

FAILED: Final = "not-planned"
"""The code of the blocker of a table that could not be looked at."""


@dataclass(frozen=True, slots=True)
class MigrationPlan(TakeoverPlan):
    """What would be done to one table.

    Attributes:
        partitions: How many partitions are taken over.
        files: The files to be taken over.
        seen: What was found in the folders of the table, for a second look; None without folders.
        form: What the files are encoded by; None where none was looked at.
        spellings: The spellings of columns that files have, each once.
        unread: What files have and the table does not, each once.
        seconds: About how long apply takes, from how long looking took and, where not all footers
            were read, from those that were; None when none was.
    """

    partitions: int
    files: PlannedFiles
    seen: SeenPlaces | None = None
    form: DataFileForm | None = None
    spellings: tuple[Mapping[int, str], ...] = ()
    unread: tuple[UnreadField, ...] = ()
    seconds: float | None = None

    @property
    def verdict(self) -> str:
        """In a word: ``ready``, ``blocked``, or ``failed`` where it could not be looked at."""
        codes = {finding.code for finding in self.blockers}
        return "failed" if FAILED in codes else "blocked" if codes else "ready"

    @property
    def rows(self) -> int | None:
        """How many rows the files hold, None when footers were not read."""
        return self.files.rows

    @property
    def encoded(self) -> EncodedFiles:
        """The files for manifests.

        Raises:
            MigrationError: If their footers were not read.
        """
        if self.form is None:
            raise MigrationError(f"The files of {self.table} were not read", hint="plan again")
        return self.files.encoded(self.form)

    @property
    def size(self) -> int:
        """How many bytes the files have."""
        return self.files.size

    def to_json(self) -> dict[str, Any]:
        """Return the plan for programs."""
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
    """Return the plan of a table that could not be looked at: its one blocker says why."""
    if isinstance(error, IcecombError):
        message, remedy = error.message, error.hint
    else:
        message, remedy = f"{type(error).__name__}: {error}", None
    finding = blocker(FAILED, message, remedy or f"icecomb doctor {table} looks at its entry")
    return MigrationPlan(
        table, "", Schema(), UNPARTITIONED_PARTITION_SPEC, (finding,), 0, PlannedFiles()
    )
