"""Libraries that only some features need, imported when such a feature is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from icecomb.format.errors import MissingDependencyError


def optional_library(name: str, purpose: str, requirement: str) -> Any:
    """Import an optional module, which `requirement` installs by pip.

    Args:
        purpose: The feature that needs it, as the beginning of a sentence: ``to_pandas needs
            pandas``.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"{purpose}, which is not installed", hint=f"Install it: pip install '{requirement}'"
        ) from error
