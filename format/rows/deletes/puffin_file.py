"""Puffin files: blobs, then a footer that describes them (spec: Puffin)."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

from icecomb.format.errors import ValidationError

_MAGIC: Final = b"PFA1"
_TRAILER: Final = struct.Struct("<i4s4s")
_NO_FLAGS: Final = bytes(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A blob of a Puffin file, as its footer describes it.

    Attributes:
        type: What its bytes are.
        fields: Ids of the fields that it is about.
        snapshot_id: Snapshot that it was computed from; -1 if it belongs to none.
        sequence_number: Sequence number of that snapshot; -1 likewise.
        offset: Offset in the file, in bytes.
        length: Length in bytes.
        properties: What else there is to say.
    """

    type: str
    fields: Sequence[int]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    properties: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the description in the footer."""
        shown: dict[str, Any] = {
            "type": self.type,
            "fields": [*self.fields],
            "snapshot-id": self.snapshot_id,
            "sequence-number": self.sequence_number,
            "offset": self.offset,
            "length": self.length,
        }
        return shown | ({"properties": dict(self.properties)} if self.properties else {})


class PuffinWriter:
    """A writer of one Puffin file, blob by blob.

    Args:
        stream: The new file.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._blobs: list[Blob] = []
        self._size = 0
        self._write(_MAGIC)

    def add(
        self,
        content: bytes,
        kind: str,
        fields: Sequence[int],
        properties: Mapping[str, str],
        *,
        snapshot_id: int = -1,
        sequence_number: int = -1,
    ) -> Blob:
        """Write a blob, not compressed.

        Args:
            content: Its bytes.
            kind: Its type.
            fields: Ids of the fields that it is about.
            properties: What else there is to say.
            snapshot_id: Snapshot that it was computed from.
            sequence_number: Sequence number of that snapshot.
        """
        blob = Blob(
            type=kind,
            fields=tuple(fields),
            snapshot_id=snapshot_id,
            sequence_number=sequence_number,
            offset=self._size,
            length=len(content),
            properties=dict(properties),
        )
        self._write(content)
        self._blobs.append(blob)
        return blob

    def finish(self) -> int:
        """Write the footer; return the length of the whole file.

        Raises:
            ValidationError: If the footer is too long for the format.
        """
        described = {
            "blobs": [blob.to_json() for blob in self._blobs],
            "properties": {"created-by": "icecomb"},
        }
        payload = json.dumps(described, ensure_ascii=False, separators=(",", ":")).encode()
        if len(payload) >= 1 << 31:
            raise ValidationError(
                f"The footer of a Puffin file with {len(self._blobs)} blobs would be too long",
                hint="Write several files.",
            )
        self._write(_MAGIC + payload + _TRAILER.pack(len(payload), _NO_FLAGS, _MAGIC))
        return self._size

    def _write(self, content: bytes) -> None:
        self._stream.write(content)
        self._size += len(content)
