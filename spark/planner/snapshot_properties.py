"""What a session and a write say that the summary of their snapshots is to have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icecomb.format.operation.summary import snapshot_texts

_OPTION: Final = "snapshot-property."
_SETTING: Final = f"spark.sql.iceberg.{_OPTION}"


def snapshot_properties(
    settings: Mapping[str, str], options: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The keys that are asked for, without the prefixes of their settings and options.

    Args:
        settings: Of the session, those that belong to Iceberg.
        options: Of the write, which go before the session's.

    Raises:
        ValidationError: A key is the operation's own.
    """
    asked = {
        key[len(_SETTING) :]: value for key, value in settings.items() if key.startswith(_SETTING)
    }
    for key, value in (options or {}).items():
        if key.lower().startswith(_OPTION):
            asked[key[len(_OPTION) :]] = value
    return snapshot_texts(asked)
