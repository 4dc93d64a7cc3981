"""Patterns of `LIKE`, as far as they are prefixes."""

from __future__ import annotations


def like_prefix(pattern: str, escape: str | None) -> tuple[str, str]:
    """Return the text before the first wildcard, and the rest.

    Without `ESCAPE` a backslash before a wildcard makes it literal, as in Spark, Hive and
    PyIceberg; elsewhere it is an ordinary character.
    """
    prefix, position = "", 0
    while position < len(pattern):
        character = pattern[position]
        following = pattern[position + 1 : position + 2]
        if (escape and character == escape) or (
            escape is None and character == "\\" and following and following in "%_"
        ):
            position += 1
            character = following
        elif character in "%_":
            break
        prefix += character
        position += 1
    return prefix, pattern[position:]


def ends_open(pattern: str, escape: str) -> bool:
    """Return whether the last character is an escape character that escapes nothing."""
    return pattern.replace(escape * 2, "").endswith(escape)
