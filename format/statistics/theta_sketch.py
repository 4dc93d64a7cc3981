"""Theta sketches: estimates of numbers of distinct values, from which others can go on."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from icecomb.format.errors import CorruptFileError, reason_of
from icecomb.format.optional_library import optional_library
from icecomb.format.statistics.distinct_hash import SEED, distinct_hashes

if TYPE_CHECKING:
    import pyarrow as pa

    from icecomb.format.spec.types import PrimitiveType

BLOB_TYPE: Final = "apache-datasketches-theta-v1"
_LOG_ENTRIES: Final = 12
"""At most 4096 hashes, as Iceberg Java has them: an error of 1.6 % in two of three cases."""
_MAX_THETA: Final = (1 << 63) - 1
# a compact sketch of all its hashes in order: number of longs, version, family, two unused, flags
_PREAMBLE: Final = struct.Struct("<BBBBBBHII")
_ORDERED: Final = 0b11010
_WHOLE_PART: Final = struct.pack("<f", 1.0)
"""The share of values that was sampled, which the Java library writes and nobody reads."""


class ThetaSketch:
    """A sketch of one column's distinct values, as Iceberg Java's `compute_table_stats`.

    The result does not depend on how values are divided among sketches.
    """

    def __init__(self) -> None:
        self._library = _library()
        self._union = self._library.theta_union(_LOG_ENTRIES, seed=SEED)
        self._seed_hash = self._library.update_theta_sketch(_LOG_ENTRIES).compact().get_seed_hash()
        self._theta = np.uint64(_MAX_THETA)

    def add(self, values: pa.Array, field_type: PrimitiveType) -> None:
        """Add values in the Arrow type of `field_type`; nulls do not count."""
        hashes = distinct_hashes(values, field_type)
        hashes = np.unique(hashes[hashes < self._theta])
        if len(hashes):
            head = _PREAMBLE.pack(2, 3, 3, 0, 0, _ORDERED, self._seed_hash, len(hashes), 0)
            self._add(self._library.compact_theta_sketch.deserialize(head + hashes.tobytes()))

    def add_sketch(self, content: bytes, path: str) -> None:
        """Add the values of another sketch, in compact form and of the default seed."""
        try:
            self._add(self._library.compact_theta_sketch.deserialize(content))
        except (RuntimeError, ValueError, IndexError) as error:
            raise CorruptFileError(
                f"A theta sketch of {len(content)} bytes in {path} is damaged: {reason_of(error)}",
                hint="Compute the statistics again.",
                path=path,
            ) from error

    def content(self) -> bytes:
        """Return the compact form, as the Java library writes it."""
        found = bytearray(self._union.get_result().serialize())
        if len(found) > 16:
            found[12:16] = _WHOLE_PART
        return bytes(found)

    def estimate(self) -> int:
        """Return the estimated number of distinct values, rounded down as in Iceberg Java."""
        return int(self._union.get_result().get_estimate())

    def _add(self, sketch: Any) -> None:
        self._union.update(sketch)
        self._theta = np.uint64(self._union.get_result().theta64)


def _library() -> Any:
    return optional_library(
        "datasketches", "Statistics of columns need datasketches", "icecomb[statistics]"
    )
