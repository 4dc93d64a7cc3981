"""Patterns of names: a ``*`` stands for any letters."""

from __future__ import annotations

import re


def name_pattern(text: str) -> re.Pattern[str]:
    """What matches whole names of a pattern."""
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)
