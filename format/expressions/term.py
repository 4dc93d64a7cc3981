"""Terms of predicates: a column, or a partition transform of one.

    EqualTo(bucket("id", 16), 3)
    GreaterThanOrEqual(day("ts"), "2024-01-01")

The time transforms `years`, `months`, `days` and `hours` count from 1970, like Spark's functions of
these names (a day is a date, too). Those in the singular are calendar units, as in SQL:
`year("ts")` is 2024, and `month`, `day` and `hour` are compared with text like `2024-01`,
`2024-01-31` and `2024-01-31-12`. Both kinds accept such text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from icecomb.format.argument import hint_of_pyiceberg
from icecomb.format.errors import ExpressionError
from icecomb.format.spec.transform import (
    BucketTransform,
    DayTransform,
    HourTransform,
    MonthTransform,
    TimeTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from icecomb.format.spec.values.temporal import days_from_civil

TERM_TRANSFORMS: Final = (BucketTransform, TruncateTransform, TimeTransform)
"""The transforms that predicates may use."""

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_EPOCH_YEAR: Final = 1970
_UNITS: Final[dict[type[TimeTransform], tuple[re.Pattern[str], str]]] = {
    YearTransform: (re.compile(r"(-?\d{4,9})"), "2024"),
    MonthTransform: (re.compile(r"(-?\d{4,9})-(\d{2})"), "2024-01"),
    HourTransform: (re.compile(r"(-?\d{4,9})-(\d{2})-(\d{2})[-T ](\d{2})"), "2024-01-31-12"),
}


@dataclass(frozen=True, slots=True)
class Reference:
    """A column by name; dots lead into structs (`address.city`).

    Args:
        name: The full name.
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ExpressionError(
                f"A column is named by a non-empty string, not {self.name!r}",
                hint=hint_of_pyiceberg(self.name, "Reference")
                or "Give its name, dots leading into structs.",
            )

    def __str__(self) -> str:
        if _PLAIN_NAME.fullmatch(self.name):
            return self.name
        quoted = self.name.replace('"', '""')
        return f'"{quoted}"'


@dataclass(frozen=True, slots=True, repr=False)
class UnboundTransform:
    """A partition transform of a column; null where the column is null.

    Args:
        transform: Bucket, truncate, year, month, day or hour.
        reference: The column.
        calendar: Whether a time transform gives calendar units, instead of counts since 1970.

    Raises:
        ExpressionError: If it is another transform.
    """

    transform: Transform
    reference: Reference
    calendar: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.transform, TERM_TRANSFORMS):
            raise ExpressionError(
                f"Cannot use the transform {self.transform} of {self.reference} in a predicate",
                hint="Use bucket, truncate, year, month, day or hour.",
            )

    def unit_literal(self, literal: Any) -> Any:
        """Convert a literal to the transform's unit: `2024-01` to months since 1970.

        Raises:
            ExpressionError: If it is not a calendar unit.
        """
        transform = self.transform
        if not isinstance(transform, TimeTransform):
            return literal
        is_number = isinstance(literal, (int, float)) and not isinstance(literal, bool)
        if isinstance(transform, DayTransform):
            if is_number and self.calendar:
                raise self._no_unit(literal, "2024-01-31")
            return literal
        pattern, example = _UNITS[type(transform)]
        if isinstance(transform, YearTransform) and type(literal) is int and self.calendar:
            return literal - _EPOCH_YEAR
        if is_number and not self.calendar:
            return literal
        match = pattern.fullmatch(literal.strip()) if isinstance(literal, str) else None
        if match is None:
            raise self._no_unit(literal, example)
        return _count([int(part) for part in match.groups()])

    def _no_unit(self, literal: Any, example: str) -> ExpressionError:
        unit = str(self.transform)
        return ExpressionError(
            f"Cannot compare {self} with {literal!r}: it is not a {unit} like {example!r}",
            hint=f"{unit}s({self.reference}) counts {unit}s since 1970.",
            column=self.reference.name,
        )

    @property
    def _arguments(self) -> tuple[str, int | None]:
        transform = self.transform
        if isinstance(transform, BucketTransform):
            return "bucket", transform.num_buckets
        if isinstance(transform, TruncateTransform):
            return "truncate", transform.width
        return f"{transform}{'' if self.calendar else 's'}", None

    def __str__(self) -> str:
        name, number = self._arguments
        return f"{name}({'' if number is None else f'{number}, '}{self.reference})"

    def __repr__(self) -> str:
        name, number = self._arguments
        return f"{name}({self.reference.name!r}{'' if number is None else f', {number}'})"


Term: TypeAlias = Reference | UnboundTransform
"""The subject of an unbound predicate."""


def as_term(term: str | Term) -> Term:
    """Return the term of a column name, or the term itself."""
    return term if isinstance(term, (Reference, UnboundTransform)) else Reference(term)


def bucket(column: str, num_buckets: int) -> UnboundTransform:
    """Return the term of a column's bucket, 0 to `num_buckets` - 1."""
    return UnboundTransform(BucketTransform(num_buckets), Reference(column))


def truncate(column: str, width: int) -> UnboundTransform:
    """Return the term of numbers rounded down to multiples of, or text or bytes cut to, `width`."""
    return UnboundTransform(TruncateTransform(width), Reference(column))


def years(column: str) -> UnboundTransform:
    """Return the term of the years since 1970."""
    return UnboundTransform(YearTransform(), Reference(column))


def months(column: str) -> UnboundTransform:
    """Return the term of the months since 1970-01."""
    return UnboundTransform(MonthTransform(), Reference(column))


def days(column: str) -> UnboundTransform:
    """Return the term of the date, or the days since 1970-01-01."""
    return UnboundTransform(DayTransform(), Reference(column))


def hours(column: str) -> UnboundTransform:
    """Return the term of the hours since 1970-01-01 00:00."""
    return UnboundTransform(HourTransform(), Reference(column))


def year(column: str) -> UnboundTransform:
    """Return the term of the calendar year: 2024, or `"2024"`."""
    return UnboundTransform(YearTransform(), Reference(column), calendar=True)


def month(column: str) -> UnboundTransform:
    """Return the term of the month of a calendar year: `"2024-01"`."""
    return UnboundTransform(MonthTransform(), Reference(column), calendar=True)


def day(column: str) -> UnboundTransform:
    """Return the term of the date: `"2024-01-31"`."""
    return UnboundTransform(DayTransform(), Reference(column), calendar=True)


def hour(column: str) -> UnboundTransform:
    """Return the term of the hour of a date: `"2024-01-31-12"`."""
    return UnboundTransform(HourTransform(), Reference(column), calendar=True)


def _count(parts: list[int]) -> int:
    """Return the years, months or hours since 1970 of a year, a month, or an hour of a day."""
    year_number, *rest = parts
    if not rest:
        return year_number - _EPOCH_YEAR
    if len(rest) == 1 and 1 <= rest[0] <= 12:
        return (year_number - _EPOCH_YEAR) * 12 + rest[0] - 1
    if len(rest) == 3 and rest[2] < 24:
        return days_from_civil(year_number, rest[0], rest[1]) * 24 + rest[2]
    raise ExpressionError(
        f"There is no such month or hour: {parts}", hint="Months are 1 to 12, hours 0 to 23."
    )
