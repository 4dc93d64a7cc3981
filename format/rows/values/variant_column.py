"""Columns of variants: those of files, shredded or not, and those of given rows.

A file keeps a variant as a group of `metadata` and `value`; a shredded one has `typed_value`, too,
from which the value is put together (Parquet: Variant Shredding).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.arrow.storage_type import without_nulls
from icecomb.format.errors import CorruptFileError
from icecomb.format.rows.values.shredded_variant import reassembled
from icecomb.format.variant.variant_array import VARIANT_ARROW

Convert: TypeAlias = Callable[[pa.Array, int], pa.Array]

_VERSION = 1


def is_variant(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is that of variants: a struct of two binary parts."""
    types = pa.types
    return bool(types.is_struct(kind)) and (
        sorted(f.name for f in kind) == [f.name for f in VARIANT_ARROW]
        and all(
            types.is_binary(f.type) or types.is_large_binary(f.type) or types.is_binary_view(f.type)
            for f in kind
        )
    )


def stored_variants(kind: pa.DataType, path: str) -> Convert:
    """Return the conversion of a file's variants; `path` names the column in errors."""
    names = {f.name for f in kind} if pa.types.is_struct(kind) else set()
    shredded = {"metadata", "typed_value"} <= names <= {"metadata", "value", "typed_value"}
    if not shredded and not is_variant(kind):
        raise CorruptFileError(
            f"Column {path!r} is {kind} in the file, not a variant",
            hint="Rewrite the file, or read an older snapshot.",
            column=path,
        )

    def convert(array: pa.Array, _: int) -> pa.Array:
        if shredded:
            return reassembled(array, path)
        if any(part.null_count for part in without_nulls(array).flatten()):
            raise CorruptFileError(
                f"Column {path!r} has a variant without metadata or value in the file",
                hint="Restore the file from a backup, or read an older snapshot.",
                column=path,
            )
        return _variants(array)

    return convert


def given_variants(array: pa.Array, _: int) -> pa.Array:
    """Convert given variants; their parts are checked by `variant_problem`."""
    return _variants(array)


def variant_problem(array: pa.StructArray) -> str | None:
    """Return what is wrong with variants that are not null; None if nothing is seen.

    Only the presence of their parts and the version are looked at: values are not decoded.
    """
    for name in ("metadata", "value"):
        empty = pc.fill_null(pc.equal(pc.binary_length(array.field(name)), 0), True)
        if empty.true_count:
            return f"{empty.true_count} of its variants have no {name}"
    versions = _first_bytes(array.field("metadata")) & 0x0F
    other = versions[versions != _VERSION]
    return f"a variant has metadata of version {other[0]}, not {_VERSION}" if len(other) else None


def _variants(array: pa.StructArray) -> pa.StructArray:
    fields = list(VARIANT_ARROW)
    children = [array.field(f.name).cast(f.type) for f in fields]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _first_bytes(array: pa.BinaryArray) -> npt.NDArray[np.uint8]:
    """Return the first byte of each value; none is empty or null."""
    _, offsets, data = array.buffers()
    if not len(array):
        return np.empty(0, np.uint8)
    starts = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array)]
    return np.frombuffer(data, np.uint8)[starts]
