"""The warehouse of an embedded metastore, and the local folder that represents it.

A local warehouse is that folder itself. For one in an object store, the metastore's own files are
in the user's data folder, in a folder named after the warehouse's location.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from icecomb.format.errors import ConfigurationError

OBJECT_STORES: Final = ("s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs")
"""Schemes of storage without folders."""


def default_warehouse() -> Path:
    """Return the default warehouse of `load_catalog("local")`, in the user's data folder."""
    return _data() / "warehouse"


def warehouse_folder(warehouse: str | os.PathLike[str] | None) -> Path:
    """Return a warehouse's local folder; None means `default_warehouse`.

    The warehouse is a local folder or a location in an object store; else ConfigurationError.
    """
    if warehouse is None:
        return default_warehouse()
    text = os.fspath(warehouse)
    scheme, colon, rest = text.partition(":")
    if colon and scheme.lower() in OBJECT_STORES and rest.startswith("//"):
        from icecomb.format.storage.location import plain_texts

        # one metastore for all of a scheme's names
        (plain,) = plain_texts([text.rstrip("/")], {})
        return _elsewhere() / quote(plain, safe="")
    if colon and scheme == "file":
        text = "/" + rest.lstrip("/")
    elif "://" in text:
        raise ConfigurationError(
            f"An embedded metastore needs a local warehouse or one in an object store, not {text}",
            hint='Use type="hive" with the uri of a metastore for a warehouse elsewhere.',
        )
    return Path(text).expanduser().absolute()


def warehouse_location(folder: Path) -> str:
    """Return the location of the warehouse that a folder represents, with its scheme."""
    if folder.parent == _elsewhere():
        return unquote(folder.name)
    return folder.as_uri()


def warehouse_text(folder: Path) -> str:
    """Return that location for people: a local folder as they write it."""
    return unquote(folder.name) if folder.parent == _elsewhere() else str(folder)


def _elsewhere() -> Path:
    return _data() / "warehouses"


def _data() -> Path:
    from platformdirs import user_data_path

    return user_data_path("icecomb")
