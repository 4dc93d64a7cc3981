"""A stream that marks the variants in the footer of a Parquet file.

pyarrow does not write the annotation VARIANT, by which other readers know the group of a variant.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import BinaryIO

from icecomb.format.rows.parquet.compact_protocol import BYTE, STRUCT, Struct, read_struct
from icecomb.format.rows.parquet.raw_footer import FIELD_ID, LOGICAL, MAGIC, SCHEMA
from icecomb.format.spec.schema import Schema, walk
from icecomb.format.spec.types import VariantType

_VARIANT = 16
"""The number of the annotation in the union LogicalType (parquet.thrift)."""
_SPECIFICATION_VERSION = 1
_END_BYTES = 4 + len(MAGIC)


def variant_ids(schema: Schema) -> frozenset[int]:
    """Return the ids of the variants in a schema, at every depth."""
    fields = walk(schema.as_struct())
    return frozenset(f.field_id for f in fields if isinstance(f.field_type, VariantType))


class AnnotatedStream:
    """A stream to which pyarrow writes a Parquet file; the caller closes `stream`.

    Args:
        variants: The field ids of the file's variants.
    """

    closed = False

    def __init__(self, stream: BinaryIO, variants: Collection[int]) -> None:
        self._stream = stream
        self._variants = variants
        self._held: list[bytes] | None = None

    def write(self, data: bytes) -> int:
        """Write data, or hold it after `hold`."""
        if self._held is None:
            return self._stream.write(data)
        self._held.append(bytes(data))
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes written, with those that are held."""
        return self._stream.tell() + sum(map(len, self._held or ()))

    def flush(self) -> None:
        """Do nothing: the caller flushes the file's stream."""

    def close(self) -> None:
        """Do nothing: the caller closes the file's stream."""

    def hold(self) -> None:
        """Hold what is written from now on, which ends with the footer."""
        self._held = []

    def release(self) -> None:
        """Write what is held, with the annotations in the footer."""
        data = b"".join(self._held or ())
        self._held = None
        length = int.from_bytes(data[-_END_BYTES : -len(MAGIC)], "little")
        begin = len(data) - _END_BYTES - length
        footer, _ = read_struct(data, begin)
        for element in footer[SCHEMA].values:
            if element.get(FIELD_ID) in self._variants:
                element.put(LOGICAL, STRUCT, _annotation())
        encoded = footer.encoded()
        self._stream.write(data[:begin] + encoded + len(encoded).to_bytes(4, "little") + MAGIC)


def _annotation() -> Struct:
    version = Struct([(1, (BYTE, _SPECIFICATION_VERSION))])
    return Struct([(_VARIANT, (STRUCT, version))])
