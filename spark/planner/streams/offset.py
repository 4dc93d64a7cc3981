"""Offsets of streams, in the form that Iceberg Java writes to checkpoints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from icecomb.format.errors import ValidationError

_VERSION: Final = 1
_NOWHERE: Final = -1


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A position in the table's history: a snapshot and a number of its files.

    Source: ``org.apache.iceberg.spark.source.StreamingOffset``.

    Args:
        position: The number of its files before this offset, in the order of its manifests.
        scan_all_files: Whether all its files count, not only those that it added.
    """

    snapshot_id: int
    position: int
    scan_all_files: bool = False

    @classmethod
    def parse(cls, text: str) -> StreamOffset:
        """Parse an offset of an Iceberg table."""
        try:
            raw = json.loads(text)
            version = raw["version"]
            fields = raw["snapshot_id"], raw["position"], raw["scan_all_files"]
        except (ValueError, KeyError, TypeError):
            version = None
        if version != _VERSION or tuple(map(type, fields)) != (int, int, bool):
            raise ValidationError(
                f"The checkpoint has an offset that is not of an Iceberg table: {text!r}",
                hint="start the query with the checkpoint that it had, or with a new, empty one",
            )
        return cls(*fields)

    def text(self) -> str:
        """Return the offset as text."""
        members = {
            "version": _VERSION,
            "snapshot_id": self.snapshot_id,
            "position": self.position,
            "scan_all_files": self.scan_all_files,
        }
        return json.dumps(members, separators=(",", ":"))


BEFORE_ALL: Final = StreamOffset(_NOWHERE, _NOWHERE)
"""The offset of a stream that began when the table had no snapshot to read."""
