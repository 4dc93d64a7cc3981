"""What the options of one query or write say, and the settings of its session.

Names are Iceberg's; settings are those that begin with ``spark.sql.iceberg.``. An option goes
before a setting, a setting before a property of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from icecomb.format.property import Property

T = TypeVar("T")
PREFIX: Final = "spark.sql.iceberg."
"""What the names of settings begin with."""


class Options:
    """The options of one query or write.

    Args:
        options: Its own, in any case.
        settings: Of its session.
    """

    def __init__(
        self, options: Mapping[str, str], settings: Mapping[str, str] | None = None
    ) -> None:
        self._spelled = options
        self._options = {key.lower(): text for key, text in options.items()}
        self._settings = settings or {}

    def text(self, option: str, setting: str | None = None) -> str | None:
        """What is said about a matter by option or by setting; None if nothing is."""
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
        """The value of a matter.

        Args:
            known: What it may be.
            properties: Of the table.
            option: The name of the option that says it.
            setting: The name of the setting, without `PREFIX`.
            default: Instead of its own default.

        Raises:
            ConfigurationError: It is set to what it cannot be.
        """
        for key, text in self._said(option, setting):
            return known.read(text, key)
        return known.of(properties, default=default)

    def spark(self, known: Property[T]) -> T:
        """The value of one of Spark's own settings."""
        return known.of(self._settings)

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """What is said under names that begin so, without that, as settings and options spell it.

        Args:
            prefix: Of options; settings have `PREFIX` before it.
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
