"""Where a setting of a store is said: Iceberg's and PyIceberg's names first, then Hadoop's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icecomb.format.errors import ConfigurationError
from icecomb.format.property import Property
from icecomb.format.storage.hdfs.address import hadoop_properties


class SettingSearch:
    """Looks in properties, then in Hadoop's settings, and remembers what was found where.

    Args:
        properties: Of the `FileIO`; Hadoop's among them go before those of core-site.xml.

    Attributes:
        properties: The same.
        hadoop: Hadoop's, see `hadoop_properties`.
        sources: The property that said it, by attribute of the settings.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.properties = properties
        self.hadoop = hadoop_properties(properties)
        self.sources: dict[str, str] = {}

    def text(
        self, name: str, known: Sequence[Property[str | None]], hadoop: Sequence[str] = ()
    ) -> str | None:
        """What is said, or None.

        Args:
            name: The attribute it is for; empty if its source tells nobody anything.
            known: Properties of ours, the first that is set wins.
            hadoop: Hadoop's keys, likewise, after them.
        """
        for one in known:
            if (said := one.of(self.properties)) is not None:
                return self._found(name, one.said_by(self.properties) or one.key, said)
        for key in hadoop:
            if said := self.hadoop.get(key, "").strip():
                return self._found(name, key, said)
        return None

    def _found(self, name: str, key: str, said: str) -> str:
        if name:
            self.sources[name] = key
        return said

    def refuse(self, reasons: Mapping[str, str], harmless: str = "false") -> None:
        """Refuse what is set of settings that would change what is written, or who may read it.

        Args:
            reasons: Why each is not served, by property.
            harmless: A value that asks for nothing.

        Raises:
            ConfigurationError: One of them is set.
        """
        for key, reason in reasons.items():
            said = self.hadoop.get(key, "").strip()
            if said and said.lower() != harmless:
                raise ConfigurationError(
                    f"Property {key} is not served: {reason}",
                    hint=f"leave {key} out for icecomb",
                    property=key,
                )
