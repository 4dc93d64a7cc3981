"""Dates and times as counts from 1970-01-01, over the whole range of the formats.

`datetime` is limited to the years 1 to 9999, Iceberg's days and microseconds are not.
"""

import re

from icecomb.format.errors import ValidationError

MICROS_PER_SECOND = 1_000_000
MICROS_PER_HOUR = 3_600 * MICROS_PER_SECOND
MICROS_PER_DAY = 24 * MICROS_PER_HOUR
NANOS_PER_MICRO = 1_000
NANOS_PER_SECOND = NANOS_PER_MICRO * MICROS_PER_SECOND

_DATE = re.compile(r"([+-]?\d{4,9})-(\d{2})-(\d{2})")
_TIME = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?")
_FINE = re.compile(r"(.*:\d{2}:\d{2})\.(\d{1,9})")
_OFFSET = re.compile(r"(.*)(?:([zZ])|([+-])(\d{2}):(\d{2})(?::(\d{2}))?)")
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day (proleptic Gregorian calendar) of a day since 1970-01-01."""
    # Eras of 400 years that begin on March 1, so that the leap day is the last day of a year.
    shifted = days + 719_468
    era, day_of_era = divmod(shifted, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01 of a date of the proleptic Gregorian calendar."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _MONTH_DAYS[month - 1] + (month == 2 and leap):
        raise ValidationError(
            f"There is no day {year:04d}-{month:02d}-{day:02d}",
            hint="Write a day of the calendar, such as 2024-01-31.",
        )
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def human_date(days: int) -> str:
    """Return a day as ISO 8601 text."""
    year, month, day = civil_from_days(days)
    return f"{_year(year)}-{month:02d}-{day:02d}"


def human_time(micros: int) -> str:
    """Return a time of day as the shortest ISO 8601 text, without seconds if they are zero."""
    seconds, fraction = divmod(micros, MICROS_PER_SECOND)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    if seconds % 60 or fraction:
        text += f":{seconds % 60:02d}"
    if fraction:
        text += f".{fraction:06d}" if fraction % 1000 else f".{fraction // 1000:03d}"
    return text


def human_timestamp(micros: int) -> str:
    """Return a timestamp as ISO 8601 text, with the time as in `human_time`."""
    days, rest = divmod(micros, MICROS_PER_DAY)
    return f"{human_date(days)}T{human_time(rest)}"


def human_timestamptz(micros: int) -> str:
    """Return a timestamp in UTC as ISO 8601 text."""
    return f"{human_timestamp(micros)}Z"


def iso_time(micros: int) -> str:
    """Return a time of day with seconds, and with six decimal places if not whole."""
    seconds, fraction = divmod(micros, MICROS_PER_SECOND)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}" if fraction else text


def iso_timestamp(micros: int) -> str:
    """Return a timestamp with seconds, and with six decimal places if not whole."""
    days, rest = divmod(micros, MICROS_PER_DAY)
    return f"{human_date(days)}T{iso_time(rest)}"


def iso_timestamp_ns(nanos: int) -> str:
    """Return a timestamp with seconds, and with nine decimal places if not whole."""
    seconds, fraction = divmod(nanos, NANOS_PER_SECOND)
    text = iso_timestamp(seconds * MICROS_PER_SECOND)
    return f"{text}.{fraction:09d}" if fraction else text


def human_timestamp_ns(nanos: int) -> str:
    """Return a timestamp with seconds, and with as many decimal places as it needs."""
    text = iso_timestamp_ns(nanos)
    return text.rstrip("0") if "." in text else text


def utc_moment(millis: int) -> str:
    """Return a time in whole seconds of UTC as text, for messages."""
    return f"{iso_timestamp(millis // 1000 * MICROS_PER_SECOND).replace('T', ' ')} UTC"


def parse_date(text: str) -> int:
    """Return the days since 1970-01-01 of an ISO 8601 date."""
    if not (match := _DATE.fullmatch(text)):
        raise ValidationError(f"Not a date: {text!r}", hint="Write it as 2017-11-16.")
    return days_from_civil(int(match[1]), int(match[2]), int(match[3]))


def parse_time(text: str) -> int:
    """Return the microseconds from midnight of an ISO 8601 time of day."""
    match = _TIME.fullmatch(text)
    if not match:
        raise ValidationError(f"Not a time of day: {text!r}", hint="Write it as 22:31:08.123456.")
    hours, minutes, seconds = int(match[1]), int(match[2]), int(match[3] or 0)
    fraction = (match[4] or "").ljust(6, "0")
    if hours > 23 or minutes > 59 or seconds > 59 or fraction[6:].strip("0"):
        raise ValidationError(
            f"Not a time of day in microseconds: {text!r}", hint="Write it as 22:31:08.123456."
        )
    return (hours * 3600 + minutes * 60 + seconds) * MICROS_PER_SECOND + int(fraction[:6])


def parse_timestamp(text: str) -> int:
    """Return the microseconds since 1970 of an ISO 8601 timestamp without zone.

    A blank may replace the `T`; a date without a time means its midnight.
    """
    date, separator, time = text.replace(" ", "T", 1).partition("T")
    try:
        return parse_date(date) * MICROS_PER_DAY + (parse_time(time) if separator else 0)
    except ValidationError as error:
        raise ValidationError(
            f"Not a timestamp without zone: {text!r}", hint="Write it as 2017-11-16T22:31:08."
        ) from error


def parse_timestamptz(text: str) -> int:
    """Return the microseconds since 1970 UTC of an ISO 8601 timestamp with offset."""
    local, offset = _without_offset(text)
    return parse_timestamp(local) - offset * MICROS_PER_SECOND


def parse_timestamp_ns(text: str) -> int:
    """Return the nanoseconds since 1970 of an ISO 8601 timestamp without zone."""
    if match := _FINE.fullmatch(text):
        return parse_timestamp(match[1]) * NANOS_PER_MICRO + int(match[2].ljust(9, "0"))
    return parse_timestamp(text) * NANOS_PER_MICRO


def parse_timestamptz_ns(text: str) -> int:
    """Return the nanoseconds since 1970 UTC of an ISO 8601 timestamp with offset."""
    local, offset = _without_offset(text)
    return parse_timestamp_ns(local) - offset * NANOS_PER_SECOND


def _without_offset(text: str) -> tuple[str, int]:
    """Return the local time and the seconds that it is ahead of UTC."""
    match = _OFFSET.fullmatch(text)
    if not match:
        raise ValidationError(
            f"Not a timestamp with an offset from UTC: {text!r}",
            hint="Write it as 2017-11-16T22:31:08+00:00.",
        )
    if match[2]:
        return match[1], 0
    offset = int(match[4]) * 3600 + int(match[5]) * 60 + int(match[6] or 0)
    return match[1], offset if match[3] == "+" else -offset


def _year(year: int) -> str:
    if 0 <= year <= 9999:
        return f"{year:04d}"
    return f"-{-year:04d}" if year < 0 else f"+{year}"
