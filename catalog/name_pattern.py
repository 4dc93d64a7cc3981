"""Patterns of names: a ``*`` matches any characters."""

from __future__ import annotations

import re


def name_pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern of whole names."""
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)
