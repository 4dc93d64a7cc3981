"""Locations as Spark's Hadoop client opens them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from icecomb.format.errors import ConfigurationError, UnsupportedError

_WEB: Final = ("webhdfs:", "swebhdfs:")


class HadoopLocations:
    """Conversion of `webhdfs://` to `hdfs://`: Spark's shaded client cannot open the former.

    Args:
        properties: The catalog's properties; those of `HADOOP_CONF_DIR` apply, too.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties

    def of(self, location: str) -> str:
        """Return the location to give to Spark."""
        if not location[:9].lower().startswith(_WEB):
            return location
        from icecomb.format.storage.hdfs.address import rpc_location

        try:
            return rpc_location(location, self._hadoop)
        except ConfigurationError as error:
            raise UnsupportedError(
                f"Spark cannot open {location}: it reads HDFS by hdfs:// only, and the settings "
                "do not say which hdfs:// address this cluster has",
                hint=error.hint,
                path=location,
            ) from error

    @cached_property
    def _hadoop(self) -> dict[str, str]:
        from icecomb.format.storage.hdfs.address import hadoop_properties

        return hadoop_properties(self._properties)
