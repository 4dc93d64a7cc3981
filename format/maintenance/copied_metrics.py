"""Metrics of data files whose row groups were copied.

Their footer has the same counts and bounds as that of a newly written file. The counts of NaN
values and the bounds of columns with them are not in the footer, and come from the manifest
entries of the sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from icecomb.format.errors import ValidationError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.rows.values.data_metrics import MetricsConfig, MetricsKind, bounds, column_types
from icecomb.format.rows.values.statistics import reliable_zeros
from icecomb.format.spec import single_value
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import DoubleType, FloatType, PrimitiveType


@dataclass(frozen=True, slots=True)
class CopiedPart:
    """The part of a source that is in a new file, or the whole."""

    file: DataFile
    whole: bool


def completed(
    written: DataFile, parts: Sequence[CopiedPart], schema: Schema, config: MetricsConfig
) -> DataFile:
    """Complete the metrics of a copied file, known by its footer, with those of its sources."""
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
        # of zeros of both signs, `min` and `max` take the first
        least, most = bounds(kind, *reliable_zeros(*_bounds(parts, number, kind)), mode)
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
        # the sources' footers and bounds may be those of another writer
        has_exact_bounds=all(part.whole and part.file.has_exact_bounds for part in parts),
    )


def _put(where: dict[int, Any], number: int, value: Any) -> None:
    if value is not None:
        where[number] = value


def _count(parts: Iterable[CopiedPart], number: int, name: str) -> int | None:
    """Return the total count of such values in the parts; None if unknown."""
    total = 0
    for part in parts:
        found = _of(part.file, name).get(number)
        if found is None or not 0 <= found <= part.file.record_count:
            return None
        if found and not part.whole:
            return None
        total += found
    return total


def _bounds(parts: Iterable[CopiedPart], number: int, kind: PrimitiveType) -> tuple[Any, Any]:
    """Return bounds of all values, None if unknown; those of a file are valid for its parts."""
    lowers: list[Any] = []
    uppers: list[Any] = []
    for part in parts:
        raw = [_of(part.file, name).get(number) for name in ("lower_bounds", "upper_bounds")]
        if raw == [None, None] and _has_no_values(part.file, number):
            continue
        if None not in raw and single_value.range_from_bytes(kind, *raw) is None:
            return None, None
        for values, bound in zip((lowers, uppers), raw, strict=True):
            values.append(None if bound is None else _read(kind, bound))
    return _chosen(min, lowers), _chosen(max, uppers)


def _read(kind: PrimitiveType, bound: bytes) -> Any:
    with suppress(ValidationError):
        return single_value.from_bytes(kind, bound)
    return None


def _chosen(choose: Callable[..., Any], bounds: Sequence[Any]) -> Any:
    """Return the outermost of bounds, None if one is unknown or there is none; NaN is none."""
    if any(bound is None or bound != bound for bound in bounds):  # noqa: PLR0124 - NaN
        return None
    return choose(bounds, default=None)


def _has_no_values(file: DataFile, number: int) -> bool:
    """Return whether a column is known to hold only nulls and NaN."""
    values = _of(file, "value_counts").get(number)
    nulls = _of(file, "null_value_counts").get(number)
    if values is None or nulls is None or not (values or not file.record_count):
        return False
    return bool(values == nulls + _of(file, "nan_value_counts").get(number, 0))


def _of(file: DataFile, name: str) -> Mapping[int, Any]:
    found: Mapping[int, Any] | None = getattr(file, name)
    return found or {}
