"""Conversion of NumPy, pandas and Arrow values to the Python values of predicates.

None of these libraries is imported needlessly: a caller that has such a value has imported it.
"""

from __future__ import annotations

import datetime as dt
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import ExpressionError
from icecomb.format.spec.values.temporal import NANOS_PER_MICRO, iso_timestamp_ns

if TYPE_CHECKING:
    import pyarrow as pa

_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - local times count from it, too
_ONE_VALUE: Final = "Give a single value; for one of several: In(column, values)."


@dataclass(frozen=True, slots=True)
class NanoTimestamp:
    """A time that is not in whole microseconds, as nanoseconds from 1970 (UTC if `zoned`)."""

    nanos: int
    zoned: bool

    def __str__(self) -> str:
        return iso_timestamp_ns(self.nanos) + ("+00:00" if self.zoned else "")


def python_value(value: Any) -> Any:
    """Convert a value to the Python type that predicates hold; every null becomes None.

    Values of unknown types stay unchanged, and times that are not in whole microseconds are
    `NanoTimestamp`.
    """
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    library = type(value).__module__.partition(".")[0]
    if library == "numpy":
        return _of_numpy(value)
    if library == "pandas":
        return _of_pandas(value)
    if library == "pyarrow":
        return _of_arrow(value)
    return value


def scalar_value(scalar: pa.Scalar) -> Any:
    """Convert an Arrow scalar to the Python type that predicates hold; null becomes None.

    It raises ValueError, pyarrow.ArrowException or OverflowError if Python cannot hold the value.
    """
    import pyarrow as pa

    kind = scalar.type
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.ExtensionScalar):
        return scalar.as_py()
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return scalar_value(scalar.value)
    if pa.types.is_timestamp(kind):
        if kind.unit == "ns" and scalar.value % NANOS_PER_MICRO:
            return NanoTimestamp(scalar.value, kind.tz is not None)
        # not as_py, which would return a pandas value, and look up the zone
        micros = scalar.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).as_py()
        value = _EPOCH + dt.timedelta(microseconds=micros)
        return value.replace(tzinfo=dt.timezone.utc) if kind.tz else value
    if pa.types.is_time(kind):
        return scalar.cast(pa.time64("us")).as_py()
    plain = (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_date(kind)
    )
    text = (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )
    data = (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
    if plain or text or data:
        return scalar.as_py()
    raise ValueError(f"it is a {kind}")


def _of_arrow(value: Any) -> Any:
    import pyarrow as pa

    if isinstance(value, (pa.Array, pa.ChunkedArray)):
        raise ExpressionError("A comparison takes one value, not an array", hint=_ONE_VALUE)
    if not isinstance(value, pa.Scalar):
        return value
    try:
        return scalar_value(value)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise ExpressionError(
            # a time that Python cannot represent has no text either
            f"No column can be compared with a value of Arrow type {value.type}: {error}",
            hint="Compare the column with a value of its own type.",
        ) from error


def _of_numpy(value: Any) -> Any:
    import numpy as np

    if isinstance(value, np.ndarray):
        if value.ndim:
            raise ExpressionError("A comparison takes one value, not an array", hint=_ONE_VALUE)
        value = value[()]
    if isinstance(value, np.datetime64):
        return _of_datetime64(value)
    # timedelta64.item() may be a number without its unit
    if isinstance(value, np.generic) and not isinstance(value, np.timedelta64):
        return value.item()
    return value


def _of_datetime64(value: Any) -> Any:
    import numpy as np

    if np.isnat(value):
        return None
    unit = np.datetime_data(value.dtype)[0]
    wanted = np.dtype("datetime64[D]" if unit in {"Y", "M", "W", "D"} else "datetime64[us]")
    found = value.astype(wanted)
    if found.astype(value.dtype) != value:
        nanos = value.astype("datetime64[ns]")
        if nanos.astype(value.dtype) != value:
            raise _too_fine(value)
        return NanoTimestamp(int(nanos.astype(np.int64)), zoned=False)
    item = found.item()
    if not isinstance(item, dt.date):
        raise _too_far(value)
    return item


def _of_pandas(value: Any) -> Any:
    pd: Any = sys.modules["pandas"]
    if isinstance(value, (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)):
        raise ExpressionError("A comparison takes one value, not a column", hint=_ONE_VALUE)
    if value is pd.NA or value is pd.NaT:
        return None
    if not isinstance(value, pd.Timestamp):
        return value
    if value.nanosecond:
        return NanoTimestamp(value.value, value.tzinfo is not None)
    try:
        return value.to_pydatetime()
    except ValueError as error:
        raise _too_far(value) from error


def _too_fine(value: Any) -> ExpressionError:
    return ExpressionError(
        f"{value!r} is finer than nanoseconds", hint="Round the value to nanoseconds first."
    )


def _too_far(value: Any) -> ExpressionError:
    return ExpressionError(
        f"{value!r} is outside of the years 1 to 9999",
        hint="Give the internal value: days, or microseconds, from 1970-01-01.",
    )
