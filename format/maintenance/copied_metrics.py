"""The metrics of data files whose row groups were copied.

Their footer tells counts and bounds as that of a file that was written anew would. What it does not
tell, manifests told of the sources: how many values are NaN, and the bounds of such columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.data_metrics import (
    MetricsConfig,
    MetricsKind,
    bounds,
    column_types,
)
from icecomb.format.rows.parquet.statistics import reliable_zeros
from icecomb.format.spec import single_value
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import DoubleType, FloatType, PrimitiveType


@dataclass(frozen=True, slots=True)
class CopiedPart:
    """What of a source is in a new file.

    Attributes:
        file: The source.
        whole: Whether all its rows are.
    """

    file: DataFile
    whole: bool


def completed(
    written: DataFile, parts: Sequence[CopiedPart], schema: Schema, config: MetricsConfig
) -> DataFile:
    """A copied file with all that is known about its columns.

    Args:
        written: What its footer says.
        parts: What it is made of.
        schema: The table's.
        config: What is kept.
    """
    nulls = dict(written.null_value_counts or {})
    nans = dict(written.nan_value_counts or {})
    lowers, uppers = dict(written.lower_bounds or {}), dict(written.upper_bounds or {})
    kinds = column_types(schema)
    for number in written.value_counts or {}:
        kind = kinds[number]
        if isinstance(kind, FloatType | DoubleType):
            _put(nans, number, _count(parts, number, "nan_value_counts"))
        if number not in nulls:
            _put(nulls, number, _count(parts, number, "null_value_counts"))
        mode = config.mode(number)
        if mode.kind is MetricsKind.COUNTS or (number in lowers and number in uppers):
            continue
        lower = _bound(min, parts, number, kind, "lower_bounds")
        upper = _bound(max, parts, number, kind, "upper_bounds")
        # of zeros of both signs, `min` and `max` take the first
        least, most = bounds(kind, *reliable_zeros(lower, upper), mode)
        if number not in lowers:
            _put(lowers, number, least)
        if number not in uppers:
            _put(uppers, number, most)
    return replace(
        written,
        null_value_counts=nulls,
        nan_value_counts=nans,
        lower_bounds=lowers,
        upper_bounds=uppers,
    )


def _put(where: dict[int, Any], number: int, value: Any) -> None:
    if value is not None:
        where[number] = value


def _count(parts: Iterable[CopiedPart], number: int, name: str) -> int | None:
    """How many such values the parts have together, None when that is not known."""
    total = 0
    for part in parts:
        found = _of(part.file, name).get(number)
        if found is None or (found and not part.whole):
            return None
        total += found
    return total


def _bound(
    choose: Any, parts: Iterable[CopiedPart], number: int, kind: PrimitiveType, name: str
) -> Any:
    """A bound of all values, None when that is not known; a file's bound is one of its parts."""
    found = []
    for part in parts:
        file = part.file
        raw = _of(file, name).get(number)
        if raw is not None:
            value = single_value.from_bytes(kind, raw)
            if value != value:  # noqa: PLR0124 - NaN is no bound
                return None
            found.append(value)
        elif not _has_no_values(file, number):
            return None
    return choose(found, default=None)


def _has_no_values(file: DataFile, number: int) -> bool:
    """Whether a column is known to hold nothing but nulls and NaN."""
    values = _of(file, "value_counts").get(number)
    nulls = _of(file, "null_value_counts").get(number)
    if values is None or nulls is None:
        return False
    return bool(values == nulls + _of(file, "nan_value_counts").get(number, 0))


def _of(file: DataFile, name: str) -> Mapping[int, Any]:
    found: Mapping[int, Any] | None = getattr(file, name)
    return found or {}
