"""Locations of new data files, as Iceberg Java chooses them for the same table properties."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from icecomb.format.errors import UnsupportedError
from icecomb.format.property.table_property import (
    DATA_PATH,
    FOLDER_STORAGE_PATH,
    OBJECT_STORE,
    OBJECT_STORE_PARTITIONED,
    OBJECT_STORE_PATH,
)
from icecomb.format.spec.own_folders import owner_of
from icecomb.format.storage.location import check_local_names

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO

CUSTOM_PROVIDERS = ("write.location-provider.impl", "write.py-location-provider.impl")

_HASH_BITS = 20
_DIRECTORY_BITS = 4
_DIRECTORIES = 3


class LocationProvider(ABC):
    """A provider of locations for new data files, all below `root` without a trailing slash."""

    root: str

    @abstractmethod
    def new_data_location(self, file_name: str, partition_path: str | None = None) -> str:
        """Return the location of a new data file.

        The partition's path, if any, has the form `day=2024-01-01/id_bucket=3`.
        """


class DefaultLocationProvider(LocationProvider):
    """The layout of Hive: `<data path>/<partition path>/<file name>`."""

    def __init__(self, table_location: str, properties: Mapping[str, str]) -> None:
        self.root = data_folder(table_location, properties)

    def new_data_location(self, file_name: str, partition_path: str | None = None) -> str:
        return "/".join(filter(None, (self.root, partition_path, file_name)))


class ObjectStoreLocationProvider(LocationProvider):
    """A layout with a hash before each path, which spreads files over a store's partitions.

    Attributes:
        partitioned_paths: Whether the partition's path is part of the file's.
        context: The name of the table in the paths of files outside its folder; else None.
    """

    def __init__(self, table_location: str, properties: Mapping[str, str]) -> None:
        self.root = data_folder(table_location, properties)
        self.partitioned_paths = OBJECT_STORE_PARTITIONED.of(properties)
        # The path of data outside the table's folder names the table that owns it.
        inside = self.root.startswith(table_location.rstrip("/"))
        self.context = None if inside else owner_of(table_location)

    def new_data_location(self, file_name: str, partition_path: str | None = None) -> str:
        name = file_name
        if self.partitioned_paths and partition_path:
            name = f"{partition_path}/{file_name}"
        hashed = _hash_path(name)
        if self.context is not None:
            return f"{self.root}/{hashed}/{self.context}/{name}"
        separator = "/" if self.partitioned_paths else "-"
        return f"{self.root}/{hashed}{separator}{name}"


def load_location_provider(
    io: FileIO, table_location: str, properties: Mapping[str, str]
) -> LocationProvider:
    """Return the provider of the layout that a table's properties set.

    Files of a table on other storage are not put on this machine: ValidationError is raised.
    """
    for key in CUSTOM_PROVIDERS:
        if key in properties:
            raise UnsupportedError(
                f"{key}={properties[key]}: data files cannot be placed by a class of another "
                "implementation",
                hint="Write with that implementation, or remove the property from the table.",
            )
    chosen = ObjectStoreLocationProvider if OBJECT_STORE.of(properties) else DefaultLocationProvider
    found = chosen(table_location, properties)
    # nobody could read them
    check_local_names(io, table_location, [f"{found.root}/"])
    return found


def data_folder(table_location: str, properties: Mapping[str, str]) -> str:
    """Return the folder below which new data files of a table are."""
    configured = (
        DATA_PATH.of(properties)
        or (OBJECT_STORE_PATH.of(properties) if OBJECT_STORE.of(properties) else None)
        or FOLDER_STORAGE_PATH.of(properties)
    )
    return (configured or f"{table_location.rstrip('/')}/data").rstrip("/")


def _hash_path(name: str) -> str:
    import mmh3

    bits = f"{mmh3.hash(name, signed=False):032b}"[-_HASH_BITS:]
    cut = [bits[i * _DIRECTORY_BITS : (i + 1) * _DIRECTORY_BITS] for i in range(_DIRECTORIES)]
    return "/".join((*cut, bits[_DIRECTORIES * _DIRECTORY_BITS :]))
