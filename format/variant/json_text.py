"""Variants as JSON text."""

from __future__ import annotations

import base64
import json
import math
import uuid
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from icecomb.format.errors import SchemaError
from icecomb.format.spec.values.temporal import human_date, iso_timestamp, iso_timestamp_ns
from icecomb.format.variant.layout import MOST_DIGITS


def parse_json(text: str | bytes) -> Any:
    """Return the Python value of JSON text, numbers with a point as decimals, as Spark does.

    A number with an exponent, or of more than 38 digits, is a float. A repeated name in an object
    raises SchemaError.
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise _wrong(f"it is of type {type(text).__name__}, not text")
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_fraction,
            parse_constant=_constant,
        )
    except RecursionError:
        raise _wrong("it has too many levels") from None
    except UnicodeDecodeError as error:
        raise _wrong(f"it is not UTF-8: {error}") from None
    except json.JSONDecodeError as error:
        raise _wrong(str(error)) from None


def json_text(value: Any) -> str:
    """Return the JSON text of a decoded value; see `Variant.to_json`."""
    return "".join(_pieces(value))


def _pieces(value: Any) -> Iterator[str]:
    """Yield the text in pieces, without a frame for each level."""
    rest: list[tuple[str, Any]] = [("", value)]
    while rest:
        before, each = rest.pop()
        yield before
        if isinstance(each, dict):
            rest.append(("}", _End))
            inside = [
                (f"{',' if at else ''}{json.dumps(name, ensure_ascii=False)}:", one)
                for at, (name, one) in enumerate(each.items())
            ]
            yield "{"
            rest.extend(reversed(inside))
        elif isinstance(each, list):
            rest.append(("]", _End))
            yield "["
            rest.extend(reversed([("," if at else "", one) for at, one in enumerate(each)]))
        elif each is not _End:
            yield _scalar(each)


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        if math.isfinite(value):
            return repr(value)
        return '"NaN"' if math.isnan(value) else f'"{"-" if value < 0 else ""}Infinity"'
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return json.dumps(base64.b64encode(value).decode())
    if isinstance(value, (uuid.UUID, datetime, date, time)):
        text = value.isoformat() if isinstance(value, (datetime, date, time)) else str(value)
        return json.dumps(text)
    return json.dumps(_distant(value))


def _distant(scalar: Any) -> str:
    """Return the text of an Arrow scalar: a date or time that Python's own types cannot hold."""
    import pyarrow as pa

    kind = scalar.type
    if pa.types.is_date32(kind):
        return human_date(scalar.value)
    text = iso_timestamp_ns if kind.unit == "ns" else iso_timestamp
    return f"{text(scalar.value)}{'' if kind.tz is None else '+00:00'}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise _wrong(f"an object has the name {twice!r} twice")
    return found


def _integer(text: str) -> int | float:
    if len(text) <= MOST_DIGITS or len(text.lstrip("-")) <= MOST_DIGITS:
        return int(text)
    return _float(text)


def _fraction(text: str) -> Decimal | float:
    exponent = "e" in text or "E" in text
    if not exponent and len(text.lstrip("-").replace(".", "").lstrip("0")) <= MOST_DIGITS:
        number = Decimal(text)
        if -int(number.as_tuple().exponent) <= MOST_DIGITS:
            return number
    return _float(text)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _wrong(f"the number {text[:20]}... is out of the range of a double")
    return number


def _constant(text: str) -> Any:
    raise _wrong(f"{text} is not a JSON value")


def _wrong(what: str) -> SchemaError:
    return SchemaError(f"Not JSON: {what}", hint="Give one JSON value.")


class _End:
    """The end of an object or array, after which nothing comes."""
