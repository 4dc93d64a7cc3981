"""Values that several commands take: moments, ages before now, and pairs NAME=VALUE."""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Iterable
from typing import Final

import click

_AGE: Final = re.compile(r"(\d{1,9})\s*(s|m|h|d|w)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def instant(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """Click callback: parse a time to milliseconds since the epoch.

    The text is `2024-05-01` or `2024-05-01T12:00:00+02:00` (UTC without a zone), or an age: `7d`.
    """
    if value is None:
        return None
    text = value.strip()
    if (age := age_of(text)) is not None:
        return int(time.time() * 1000) - age
    found = moment_of(text)
    if found is None:
        raise click.BadParameter(f"{value!r} is neither a time (2024-05-01T12:00) nor an age (7d)")
    return found


def duration(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """Click callback: parse a duration such as `7d` to milliseconds."""
    found = None if value is None else age_of(value)
    if value is not None and found is None:
        raise click.BadParameter(f"{value!r} is not an age (30m, 12h, 7d, 4w)")
    return found


def age_of(text: str) -> int | None:
    """Return the milliseconds of a text such as `7d` or `90 m`; None if it is not one."""
    found = _AGE.fullmatch(text.strip().lower())
    return None if found is None else int(found[1]) * _SECONDS[found[2]] * 1000


def moment_of(text: str) -> int | None:
    """Return an ISO 8601 text or a number as milliseconds since the epoch; None if neither."""
    text = text.strip()
    if re.fullmatch(r"\d{11,15}", text):
        return int(text)
    try:
        found = dt.datetime.fromisoformat(re.sub("[Zz]$", "+00:00", text))
    except ValueError:
        return None
    aware = found if found.tzinfo else found.replace(tzinfo=dt.timezone.utc)
    return int(aware.timestamp() * 1000)


def pairs(option: str, given: Iterable[str], form: str = "KEY=VALUE") -> dict[str, str]:
    """Return the values of an option that is given once for each name, such as ``--set``.

    The message names `form`; another form, or a repeated name, raises click.UsageError.
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.UsageError(f"{option} {text}: write it as {form}")
        if name in found:
            raise click.UsageError(f"{option} {name} is given twice")
        found[name] = value
    return found
