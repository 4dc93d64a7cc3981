"""Puffin files: blobs, then a footer that describes them (spec: Puffin)."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, BinaryIO, Final

from icecomb.format.avro.container import damage_of, unpacked
from icecomb.format.errors import CorruptFileError, UnsupportedError, ValidationError
from icecomb.format.input_limit import bounded_json, unpacked_bytes

_MAGIC: Final = b"PFA1"
_TRAILER: Final = struct.Struct("<i4s4s")
_NO_FLAGS: Final = bytes(4)
_PACKED_FOOTER: Final = b"\x01\0\0\0"
_CODECS: Final = ("lz4", "zstd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A blob of a Puffin file, as its footer describes it; offset and length are in bytes.

    Attributes:
        snapshot_id: Snapshot that it was computed from; -1 if it belongs to none.
        sequence_number: Sequence number of that snapshot; -1 likewise.
        codec: Name of the codec that its bytes are compressed with; None if they are not.
    """

    type: str
    fields: Sequence[int]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    properties: Mapping[str, str] = field(default_factory=dict)
    codec: str | None = None

    @classmethod
    def from_json(cls, shown: Mapping[str, Any]) -> Blob:
        """Read the description in a footer; KeyError, TypeError or ValueError if it is none."""
        return cls(
            type=str(shown["type"]),
            fields=tuple(int(number) for number in shown["fields"]),
            snapshot_id=int(shown["snapshot-id"]),
            sequence_number=int(shown["sequence-number"]),
            offset=int(shown["offset"]),
            length=int(shown["length"]),
            properties=dict(shown.get("properties") or {}),
            codec=shown.get("compression-codec"),
        )

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
        if self.codec is not None:
            shown["compression-codec"] = self.codec
        return shown | ({"properties": dict(self.properties)} if self.properties else {})


class PuffinWriter:
    """A writer of one Puffin file, blob by blob."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._blobs: list[Blob] = []
        self._size = 0
        self._footer_size = 0
        self._write(_MAGIC)

    @property
    def footer_size(self) -> int:
        """The length of the footer, which `finish` wrote."""
        return self._footer_size

    def add(
        self,
        content: bytes,
        kind: str,
        fields: Sequence[int],
        properties: Mapping[str, str],
        *,
        snapshot_id: int = -1,
        sequence_number: int = -1,
        codec: str | None = None,
    ) -> Blob:
        """Write a blob; `codec` names what its content is compressed with already."""
        blob = Blob(
            type=kind,
            fields=tuple(fields),
            snapshot_id=snapshot_id,
            sequence_number=sequence_number,
            offset=self._size,
            length=len(content),
            properties=dict(properties),
            codec=codec,
        )
        self._write(content)
        self._blobs.append(blob)
        return blob

    def finish(self) -> int:
        """Write the footer; return the length of the whole file."""
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
        begin = self._size
        self._write(_MAGIC + payload + _TRAILER.pack(len(payload), _NO_FLAGS, _MAGIC))
        self._footer_size = self._size - begin
        return self._size

    def _write(self, content: bytes) -> None:
        self._stream.write(content)
        self._size += len(content)


class PuffinReader:
    """A reader of a Puffin file, whose blobs must not overlap.

    A small file could otherwise stand for any number of bytes; the limit of what is unpacked is
    that of all blobs together.
    """

    def __init__(self, content: bytes, path: str) -> None:
        self._content = content
        self._path = path
        self._left = unpacked_bytes()
        try:
            self.blobs = tuple(Blob.from_json(each) for each in self._footer()["blobs"])
        except (
            KeyError, TypeError, ValueError, OverflowError, struct.error,
            RecursionError, MemoryError,
        ) as error:  # fmt: skip
            raise self._damaged(f"its footer cannot be read: {damage_of(error)}") from error
        ranges = sorted((blob.offset, blob.offset + blob.length) for blob in self.blobs)
        if any(start < end for (_, end), (start, _) in pairwise(ranges)):
            raise self._damaged("its blobs overlap")

    def stored(self, blob: Blob) -> bytes:
        """Return the bytes of a blob as they are in the file."""
        end = blob.offset + blob.length
        if not len(_MAGIC) <= blob.offset <= end <= len(self._content):
            raise self._damaged(f"its blob of type {blob.type} is not in the file")
        return self._content[blob.offset : end]

    def content(self, blob: Blob) -> bytes:
        """Return the bytes of a blob, unpacked."""
        found = self.stored(blob)
        if blob.codec is None:
            return found
        if blob.codec not in _CODECS:
            raise UnsupportedError(
                f"A blob of {self._path} is compressed with {blob.codec}",
                hint=f"icecomb reads {' and '.join(_CODECS)}: have it written with one of them.",
                path=self._path,
            )
        try:
            content = unpacked(found, blob.codec, self._left)
        except (ValueError, MemoryError) as error:
            raise self._damaged(f"a blob cannot be unpacked: {damage_of(error)}") from error
        self._left -= len(content)
        return content

    def _footer(self) -> Mapping[str, Any]:
        length, flags, magic = _TRAILER.unpack(self._content[-_TRAILER.size :])
        end = len(self._content) - _TRAILER.size
        start = end - length
        if self._content[:4] != _MAGIC or magic != _MAGIC or not 8 <= start <= end:
            raise ValueError("no magic bytes, or a wrong length")
        if self._content[start - 4 : start] != _MAGIC or flags not in {_NO_FLAGS, _PACKED_FOOTER}:
            raise ValueError(f"no magic bytes before it, or unknown flags {flags.hex()}")
        payload = self._content[start:end]
        if flags == _PACKED_FOOTER:
            payload = unpacked(payload, "lz4", unpacked_bytes())
        return dict(bounded_json(payload))

    def _damaged(self, why: str) -> CorruptFileError:
        return CorruptFileError(
            f"{self._path} is not a sound Puffin file: {why}",
            hint="Compute what is in it again.",
            path=self._path,
        )
