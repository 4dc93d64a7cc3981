"""Avro files of which some values are changed, and nothing else.

The schema, the key-value metadata, the codec and the sync marker stay those of the file, so that
the same change of the same file has the same bytes each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any, Final

from icecomb.format.avro.container import (
    SYNC_SIZE,
    ContainerWriter,
    RecordForm,
    parse_container,
    plain_form,
    read_header,
)
from icecomb.format.avro.encoder import Encoder
from icecomb.format.avro.records import fits_exactly, read_records

_CODECS: Final = {"null": "uncompressed", "zstandard": "zstd", "snappy": "snappy"}
"""What Iceberg calls Avro's codecs; others are written as gzip."""
_OWN: Final = frozenset(("avro.schema", "avro.codec"))


class AvroRecords:
    """The records of a manifest or manifest list, to be changed in memory.

    Args:
        data: The file's bytes.
        location: Its location, for errors.
        names: Names of field ids, which the records use.

    Attributes:
        records: The records, to be changed in place.

    Raises:
        CorruptFileError: If it is not an Avro file, or is damaged.
        UnsupportedError: If it is encrypted.
    """

    def __init__(self, data: bytes, location: str, names: Mapping[int, str]) -> None:
        self._container = parse_container(data, location)
        self._plain = plain_form(self._container, names)
        other = plain_form(self._container, names, fixed_as_bytes=True)
        # as decode_manifest: Iceberg Java 1.11 declares `fixed`, and writes `bytes`
        if other != self._plain and not fits_exactly(self._container, self._plain):
            self._plain = other
        _, at = read_header(data)
        self._sync = data[at : at + SYNC_SIZE]
        self.records: list[dict[str, Any]] = read_records(self._container, self._plain)

    def to_bytes(self) -> bytes:
        """Return the file with the records as they are now."""
        container = self._container
        codec = container.text("avro.codec") or "null"
        writer = ContainerWriter(
            RecordForm(container.text("avro.schema") or "", _encoder(self._plain)),
            {key: container.text(key) or "" for key in container.metadata if key not in _OWN},
            codec=_CODECS.get(codec, "gzip"),
            sync=self._sync,
        )
        for record in self.records:
            writer.add(record)
        return writer.finish()


def _encoder(plain: Any) -> Encoder:
    """Return a function that encodes what fastavro decoded."""
    import fastavro

    parsed = fastavro.parse_schema(plain)

    def encode(record: Any) -> bytes:
        out = BytesIO()
        fastavro.schemaless_writer(out, parsed, record)
        return out.getvalue()

    return encode
