"""Arrow arrays of variants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from icecomb.format.argument import name_of_type
from icecomb.format.errors import SchemaError
from icecomb.format.spec.arrow_schema import type_to_pyarrow
from icecomb.format.spec.types import VariantType
from icecomb.format.variant.variant import Variant

VARIANT_ARROW: Final = type_to_pyarrow(VariantType())
"""The Arrow type of variants: a struct of two required binary parts."""


def variants_to_arrow(values: Iterable[Any]) -> pa.StructArray:
    """Return an Arrow array of variants, as columns of type `variant` have it.

    Args:
        values: Python values, each encoded as by `Variant.of`, or `Variant`s; None is the null of
            the column, and `Variant.of(None)` a variant null.

    Raises:
        SchemaError: If a value has no variant form, or one value is given in place of several.
    """
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, Mapping)):
        raise SchemaError(
            f"Variants are made of a list of values, not of {name_of_type(values)}",
            hint="Give a list, also for one value: variants_to_arrow([value]).",
        )
    each = (v if v is None or isinstance(v, Variant) else Variant.of(v) for v in values)
    return variant_array([None if v is None else (v.metadata, v.value) for v in each])


def variants_from_arrow(array: pa.Array | pa.ChunkedArray) -> list[Variant | None]:
    """Return the variants of an Arrow column, None for nulls of the column.

    Raises:
        SchemaError: If it is not an array of structs of `metadata` and `value`.
    """
    if not isinstance(array, (pa.Array, pa.ChunkedArray)):
        raise SchemaError(
            f"Variants come from an Arrow array, not from a {type(array).__name__}",
            hint="Give a column of type variant, such as table.scan().to_arrow()['v'].",
        )
    kind = array.type
    if not pa.types.is_struct(kind) or {f.name for f in kind} != {"metadata", "value"}:
        raise SchemaError(
            f"An array of {kind} has no variants",
            hint="Give a column of type variant: struct<metadata: binary, value: binary>.",
        )
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return [
        Variant(metadata, value) if present else None
        for chunk in chunks
        for present, metadata, value in zip(
            chunk.is_valid().to_pylist(),
            chunk.field("metadata").to_pylist(),
            chunk.field("value").to_pylist(),
            strict=True,
        )
    ]


def variant_array(values: Sequence[tuple[bytes, bytes] | None]) -> pa.StructArray:
    """Return an array of variants from pairs of metadata and value; None is null."""
    parts = [_binary([b"" if pair is None else pair[at] for pair in values]) for at in (0, 1)]
    mask = pa.array([pair is None for pair in values], pa.bool_())
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT_ARROW), mask=mask)


def _binary(values: list[bytes]) -> pa.BinaryArray:
    array = pa.array(values, pa.binary())
    if isinstance(array, pa.ChunkedArray):
        raise SchemaError(
            f"{len(values)} variants have more than 2 GiB",
            hint="Make, or read, fewer rows at once.",
        )
    return array
