"""What a user chooses of a migration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

TIMESTAMP_CHOICES: Final = ("timestamptz", "timestamp")
"""What Hive's ``timestamp`` may become; the first, as in Iceberg Java's migrate, is the default."""
ACCEPTABLE: Final = {
    "bucketing": "lose the table's Hive bucketing (the rows stay, the layout is not promised)",
    "missing-partitions": "leave out partitions whose folder does not exist",
    "subdirectories": "take over files in sub-folders of a partition, too",
}
"""Blockers that a user may accept by name, and what accepting means."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user chose; recorded, because the table depends on it.

    Attributes:
        timestamp: what Hive's timestamp becomes, one of `TIMESTAMP_CHOICES`.
        time_zone: the zone of local timestamps in partition values.
        accept: names of accepted blockers, see `ACCEPTABLE`.
    """

    timestamp: str = TIMESTAMP_CHOICES[0]
    time_zone: str = "UTC"
    accept: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The choices as in the journal."""
        return {
            "timestamp": self.timestamp,
            "time-zone": self.time_zone,
            "accept": list(self.accept),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Choices:
        """Read what `to_json` wrote."""
        return cls(raw["timestamp"], raw["time-zone"], tuple(raw["accept"]))
