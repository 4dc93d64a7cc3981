"""Search for a store's settings: under Iceberg's and PyIceberg's names, then under Hadoop's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icecomb.format.errors import ConfigurationError
from icecomb.format.property.property import Property
from icecomb.format.storage.hdfs.address import hadoop_properties


class SettingSearch:
    """A search in properties and then in Hadoop's settings, which records the sources.

    Args:
        properties: Properties of the `FileIO`; Hadoop's among them override core-site.xml.

    Attributes:
        hadoop: Hadoop's settings; see `hadoop_properties`.
        sources: Property that each setting comes from, by attribute of the settings.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.properties = properties
        self.hadoop = hadoop_properties(properties)
        self.sources: dict[str, str] = {}

    def text(
        self, name: str, known: Sequence[Property[str | None]], hadoop: Sequence[str] = ()
    ) -> str | None:
        """Return the value of a setting, or None.

        Args:
            name: Attribute to record the source for; empty = do not record it.
            known: Properties of icecomb; the first one set wins.
            hadoop: Hadoop's keys, searched after them in the same way.
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

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Refuse unsupported settings, which would change what is written or who may read it.

        Reasons are by property; the value `false` has no effect and is accepted.
        """
        for key, reason in reasons.items():
            said = self.hadoop.get(key, "").strip()
            if said and said.lower() != "false":
                raise ConfigurationError(
                    f"Property {key} is not served: {reason}",
                    hint=f"Leave {key} out for icecomb.",
                    property=key,
                )
