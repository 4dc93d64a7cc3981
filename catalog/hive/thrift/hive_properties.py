"""Properties of a metastore's client by Hive's names."""

from __future__ import annotations

from collections.abc import Mapping

from icecomb.catalog.configuration import flag, seconds


class HiveProperties:
    """Looks up ``hive.metastore.*``, which Hive 3 renamed to ``metastore.*``.

    Args:
        properties: The catalog's.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties

    def anything(self, name: str) -> str | None:
        """The property of exactly this name."""
        return self._properties.get(name)

    def find(self, name: str) -> str | None:
        """The value of ``hive.metastore.<name>``, else of ``metastore.<name>``."""
        found = self._properties.get(f"hive.metastore.{name}")
        return self._properties.get(f"metastore.{name}") if found is None else found

    def text(self, name: str, default: str) -> str:
        """The same with a default."""
        found = self.find(name)
        return default if found is None else found

    def flag(self, name: str, *, default: bool) -> bool:
        """One that is ``true`` or ``false``."""
        found = self.find(name)
        key = f"hive.metastore.{name}"
        return default if found is None else flag({key: found}, key, default=default)

    def seconds(self, name: str, default: float) -> float:
        """A duration."""
        found = self.find(name)
        return default if found is None else seconds(found)
