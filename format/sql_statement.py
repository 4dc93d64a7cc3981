"""Names and constants in SQL statements, of those that run and of those that are printed.

A statement that is printed is pasted into programs that split it into statements before they parse
it: Hive's and Spark's do so at a semicolon, and know no quoted names. A printed statement says
`LEFT_OUT` for a name that such a program could cut.
"""

from __future__ import annotations

import re
from typing import Final

LEFT_OUT: Final = "..."
"""What a printed statement says instead of a text that could end it."""
_CUTTING: Final = re.compile(r"[;'\"\\]|--|/\*")
_PLAIN: Final = re.compile(r"[^;'\"\\`$]")


def quoted_name(*parts: str) -> str:
    """Return a name for Hive, Spark and ORC, with each part quoted."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def printed_name(*parts: str) -> str:
    """Return a quoted name for a statement that is printed; `LEFT_OUT` if it could end it."""
    return quoted_name(*parts) if all(map(is_whole, parts)) else LEFT_OUT


def printed_text(text: str) -> str:
    r"""Return a constant for a statement that is printed, with ``\uxxxx`` for what could end it."""
    return "'" + "".join(map(_escaped, text)) + "'"


def is_whole(text: str) -> bool:
    """Return whether a text stays in one statement wherever that is pasted."""
    return text.isprintable() and _CUTTING.search(text) is None


def _escaped(character: str) -> str:
    if character.isprintable() and _PLAIN.fullmatch(character):
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
