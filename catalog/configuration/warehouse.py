"""The warehouse of an embedded metastore, and the local folder that represents it.

A local warehouse is that folder itself, if no other user could exchange it. For others, and for one
in an object store, the metastore's own files are in the user's data folder, in a folder named after
the warehouse's location.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from icecomb.format.errors import ConfigurationError, FileAlreadyExistsError
from icecomb.format.private_path import open_part
from icecomb.format.storage.local import LocalFileSystem, real_folder

OBJECT_STORES: Final = ("s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs")
"""Schemes of storage without folders."""


def default_warehouse() -> Path:
    """Return the default warehouse of `load_catalog("local")`, in the user's data folder."""
    return _data() / "warehouse"


def warehouse_folder(warehouse: str | os.PathLike[str] | None, *, create: bool = False) -> Path:
    """Return the local folder that represents a warehouse; None means `default_warehouse`.

    The warehouse is a local folder or a location in an object store; else ConfigurationError. Two
    dots remove the part before them, also where that is a link, as in locations of tables. A link
    that another user made is not followed.

    Args:
        create: Whether to create a missing local folder.
    """
    text = os.fspath(default_warehouse() if warehouse is None else warehouse)
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
    folder = _plain(Path(text).expanduser())
    if folder.is_relative_to(_elsewhere()):
        return folder
    try:
        real = Path(real_folder(str(folder)))
        if create and not real.is_dir():
            with contextlib.suppress(FileAlreadyExistsError):
                LocalFileSystem().create_folder(str(real))
        return folder if open_part(folder) is None else _beside() / real.relative_to("/")
    except OSError as error:
        raise ConfigurationError(
            f"The warehouse {folder} cannot be used: {error.strerror or error}",
            hint="Name a local folder with free space that you may write to (warehouse=...)",
            path=str(folder),
        ) from error


def local_folder(folder: Path) -> Path | None:
    """Return the local warehouse that a folder represents; None for one in an object store."""
    if folder.is_relative_to(_beside()):
        return "/" / folder.relative_to(_beside())
    return None if folder.parent == _elsewhere() else folder


def warehouse_location(folder: Path) -> str:
    """Return the location of the warehouse that a folder represents, with its scheme."""
    local = local_folder(folder)
    return unquote(folder.name) if local is None else local.as_uri()


def warehouse_text(folder: Path) -> str:
    """Return that location for people: a local folder as they write it."""
    local = local_folder(folder)
    return unquote(folder.name) if local is None else str(local)


def _elsewhere() -> Path:
    return _data() / "warehouses"


def _beside() -> Path:
    return _elsewhere() / "file"


def _data() -> Path:
    from platformdirs import user_data_path

    return _plain(user_data_path("icecomb"))


def _plain(path: Path) -> Path:
    """Return an absolute path without dots: what is checked is what Java and Hadoop open."""
    return Path(os.path.normpath(path.absolute()))
