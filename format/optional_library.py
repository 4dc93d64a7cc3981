"""Libraries that only some features need, imported when one of these is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from icecomb.format.errors import MissingDependencyError


def optional_library(name: str, purpose: str, requirement: str) -> Any:
    """The module ``name``.

    Args:
        name: As it is imported.
        purpose: What needs it, the beginning of a sentence: ``to_pandas needs pandas``.
        requirement: What pip installs it by.

    Raises:
        MissingDependencyError: It is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"{purpose}, which is not installed", hint=f"Install it: pip install '{requirement}'"
        ) from error
