"""Where a stream is: an offset, in the form that Iceberg Java writes into checkpoints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from icecomb.format.errors import ValidationError

_VERSION: Final = 1
_NOWHERE: Final = -1


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """All of the table's history up to a snapshot, and some of that snapshot's files.

    Source: ``org.apache.iceberg.spark.source.StreamingOffset``.

    Args:
        snapshot_id: The snapshot.
        position: How many of its files are before this offset, in the order of its manifests.
        scan_all_files: Whether all its files count, not only those that it added.
    """

    snapshot_id: int
    position: int
    scan_all_files: bool = False

    @classmethod
    def parse(cls, text: str) -> StreamOffset:
        """The offset of its text.

        Raises:
            ValidationError: It is none.
        """
        try:
            raw = json.loads(text)
            version = raw["version"]
            fields = raw["snapshot_id"], raw["position"], raw["scan_all_files"]
        except (ValueError, KeyError, TypeError):
            version = None
        if version != _VERSION or tuple(map(type, fields)) != (int, int, bool):
            raise ValidationError(
                f"The checkpoint has an offset that is none of an Iceberg table: {text!r}",
                hint="start the query with the checkpoint that it had, or with a new, empty one",
            )
        return cls(*fields)

    def text(self) -> str:
        """The offset as text."""
        members = {
            "version": _VERSION,
            "snapshot_id": self.snapshot_id,
            "position": self.position,
            "scan_all_files": self.scan_all_files,
        }
        return json.dumps(members, separators=(",", ":"))


BEFORE_ALL: Final = StreamOffset(_NOWHERE, _NOWHERE)
"""Of a stream that began when the table had no snapshot that it reads."""
