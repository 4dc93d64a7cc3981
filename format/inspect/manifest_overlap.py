"""Estimates of how many manifests a scan of one partition reads, from the manifest list."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from icecomb.format.avro.schema import from_avro
from icecomb.format.expressions.bound import (
    BoundLiteralPredicate,
    BoundReference,
    BoundUnaryPredicate,
)
from icecomb.format.expressions.expression import (
    AlwaysTrue,
    And,
    BooleanExpression,
    Operation,
)
from icecomb.format.expressions.manifest_evaluator import select_manifests
from icecomb.format.spec.types import NestedField, PrimitiveType, UUIDType

if TYPE_CHECKING:
    from icecomb.format.arrow.number_view import Longs
    from icecomb.format.inspect.partition_counts import PartitionCounts
    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.spec.metadata import TableMetadata

_SAMPLE: Final = 32
"""The number of partitions to sample, evenly spread over all of them."""


def manifests_per_partition(
    metadata: TableMetadata,
    spec_id: int,
    manifests: Sequence[ManifestFile],
    partitions: PartitionCounts,
) -> float:
    """Return how many manifests a scan of one partition reads on average.

    The others are skipped by their partition summaries.
    """
    spec = metadata.spec_by_id(spec_id)
    fields = spec.partition_type(metadata.schema_of(spec)).fields
    asked = [
        len(select_manifests(manifests, spec, _of_partition(fields, values)))
        for values in partition_values(fields, partitions, sampled(len(partitions), _SAMPLE))
    ]
    return sum(asked) / len(asked) if asked else 0.0


def sampled(count: int, most: int) -> Longs:
    """Return at most `most` row numbers, evenly spread over `count` rows."""
    return np.linspace(0, count - 1, min(count, most)).astype(np.int64)


def partition_values(
    fields: Sequence[NestedField], partitions: PartitionCounts, rows: Longs
) -> Iterator[tuple[Any, ...]]:
    """Yield the tuples of some partitions of a census, as internal values."""
    columns = [array.to_pylist() for array in partitions.rows(rows)]
    for values in zip(*columns, strict=True):
        yield tuple(
            from_avro(field.field_type, value)
            if isinstance(field.field_type, UUIDType) and value is not None
            else value
            for field, value in zip(fields, values, strict=True)
        )


def _of_partition(fields: Sequence[NestedField], values: Sequence[Any]) -> BooleanExpression:
    found: BooleanExpression = AlwaysTrue()
    for field, value in zip(fields, values, strict=True):
        term = BoundReference(field, field.name)
        if not isinstance(field.field_type, PrimitiveType):
            continue
        if value is None:
            one: BooleanExpression = BoundUnaryPredicate(Operation.IS_NULL, term)
        elif isinstance(value, float) and math.isnan(value):
            one = BoundUnaryPredicate(Operation.IS_NAN, term)
        else:
            one = BoundLiteralPredicate(Operation.EQ, term, value)
        found = one if isinstance(found, AlwaysTrue) else And(found, one)
    return found
