"""Options of one query or write, and settings of its session.

Names are Iceberg's; settings begin with ``spark.sql.iceberg.``. An option takes precedence over a
setting, a setting over a table property.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from icecomb.format.property.property import Property

T = TypeVar("T")
PREFIX: Final = "spark.sql.iceberg."
"""The prefix of settings."""


class Options:
    """The options, case-insensitive, of one query or write, and its session's settings."""

    def __init__(
        self, options: Mapping[str, str], settings: Mapping[str, str] | None = None
    ) -> None:
        self._spelled = options
        self._options = {key.lower(): text for key, text in options.items()}
        self._settings = settings or {}

    def text(self, option: str, setting: str | None = None) -> str | None:
        """Return the text of an option, else of a setting; None if neither is set."""
        return next((text for _, text in self._said(option, setting)), None)

    def of(
        self,
        known: Property[T],
        properties: Mapping[str, str],
        option: str | None,
        setting: str | None = None,
        *,
        default: T | None = None,
    ) -> T:
        """Return the value of an option, else of a setting, else of a table property.

        Args:
            setting: The name of the setting, without `PREFIX`.
            default: A default instead of the property's own.
        """
        for key, text in self._said(option, setting):
            return known.read(text, key)
        return known.of(properties, default=default)

    def spark(self, known: Property[T]) -> T:
        """Return the value of one of Spark's own settings."""
        return known.of(self._settings)

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """Return settings and options with a prefix, without it, in their own spelling.

        Args:
            prefix: The prefix of options; settings have `PREFIX` before it.
        """
        found = {
            key[len(PREFIX + prefix) :]: text
            for key, text in self._settings.items()
            if key.startswith(PREFIX + prefix)
        }
        return found | {
            key[len(prefix) :]: text
            for key, text in self._spelled.items()
            if key.lower().startswith(prefix)
        }

    def _said(self, option: str | None, setting: str | None) -> Iterator[tuple[str, str]]:
        if option is not None and option in self._options:
            yield option, self._options[option]
        if setting is not None and (key := PREFIX + setting) in self._settings:
            yield key, self._settings[key]
