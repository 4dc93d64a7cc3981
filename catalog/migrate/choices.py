"""The options of a migration that a user chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from icecomb.format.errors import UnsupportedError
from icecomb.format.spec.schema import V3_FORMAT_VERSION

TIMESTAMP_CHOICES: Final = ("timestamptz", "timestamp", "timestamptz_ns", "timestamp_ns")
"""Types for Hive's ``timestamp``; the default is the first, as in Iceberg Java's migrate.

Those in nanoseconds keep all nine digits of Hive's, and need format version 3.
"""
ACCEPTABLE: Final = {
    "bucketing": "lose the table's Hive bucketing (the rows stay, the layout is not promised)",
    "char-partition": "take partitions by char(n) for texts as they are, with their blanks",
    "collation": "compare texts of columns with a collation as they are, as Iceberg does",
    "dropped-commits": "leave behind what was committed to a dropped Iceberg table of the folder",
    "int96-nanoseconds": "take over INT96 as nanoseconds; filters of Iceberg Java miss rows of it",
    "missing-partitions": "leave out partitions whose folder does not exist",
    "same-folder": "break Hive's readers of other tables in the same folder",
    "subdirectories": "take over files in sub-folders of a partition, too",
}
"""Blockers that a user may accept by name, and their meaning."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The user's choices, recorded because the table depends on them.

    Attributes:
        timestamp: Type for Hive's timestamp, one of `TIMESTAMP_CHOICES`.
        time_zone: Time zone of local timestamps in partition values.
        accept: Names of accepted blockers; see `ACCEPTABLE`.
    """

    timestamp: str = TIMESTAMP_CHOICES[0]
    time_zone: str = "UTC"
    accept: tuple[str, ...] = ()

    def check_version(self, format_version: int) -> None:
        """Refuse a type of timestamps that tables of a format version cannot have.

        Raises:
            UnsupportedError: If there is one.
        """
        if self.timestamp.endswith("_ns") and format_version < V3_FORMAT_VERSION:
            raise UnsupportedError(
                f"Type {self.timestamp} belongs to format version 3 (v3), and the table would have "
                f"version {format_version}",
                hint="Give it the property format-version=3, or choose "
                f"{self.timestamp.removesuffix('_ns')} (`--timestamp`).",
            )

    def to_json(self) -> dict[str, Any]:
        """Return the choices as JSON values for the journal."""
        return {
            "timestamp": self.timestamp,
            "time-zone": self.time_zone,
            "accept": list(self.accept),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Choices:
        """Read what `to_json` wrote."""
        return cls(raw["timestamp"], raw["time-zone"], tuple(raw["accept"]))
