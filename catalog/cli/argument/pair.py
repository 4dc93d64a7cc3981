"""Arguments of the form NAME=VALUE."""

from __future__ import annotations

from collections.abc import Iterable

import click


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
