"""The absolute paths in a metadata file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

from icecomb.format.errors import ValidationError
from icecomb.format.property.table_property import FOLDER_PATHS, FORMER_FOLDERS

_PROPERTIES: Final = tuple(one.key for one in FOLDER_PATHS)
_STATISTICS: Final = ("statistics", "partition-statistics")
_STATISTICS_FILES: Final = tuple((name, "statistics-path") for name in _STATISTICS)


def changed_document(
    document: dict[str, Any], kept: Callable[[str, str], str], rewritten: Callable[[str, str], str]
) -> dict[str, Any]:
    """Return the JSON object of a metadata file with other locations; other members stay.

    Args:
        kept: Function for the new location of what is not changed, from the old one and what it
            is.
        rewritten: The same for files that contain locations themselves.
    """
    changed = dict(document)
    changed["location"] = kept(document["location"], "table location")
    properties = dict(document.get("properties") or {})
    for name in _PROPERTIES:
        if name in properties:
            properties[name] = kept(str(properties[name]), f"property {name}")
    if FORMER_FOLDERS.key in properties:
        moved = _former(FORMER_FOLDERS.of(properties), kept)
        properties[FORMER_FOLDERS.key] = json.dumps(moved)
    if properties:
        changed["properties"] = properties
    if document.get("snapshots"):
        changed["snapshots"] = [_snapshot(one, rewritten) for one in document["snapshots"]]
    if document.get("metadata-log"):
        changed["metadata-log"] = [
            {**entry, "metadata-file": rewritten(entry["metadata-file"], "metadata file")}
            for entry in document["metadata-log"]
        ]
    for name in _STATISTICS:
        if document.get(name):
            changed[name] = [
                {**one, "statistics-path": kept(one["statistics-path"], "statistics file")}
                for one in document[name]
            ]
    return changed


def _former(folders: Iterable[str], kept: Callable[[str, str], str]) -> list[str]:
    found = []
    for folder in folders:
        # no file of the table is in one that is not moved
        with suppress(ValidationError):
            found.append(kept(folder, f"property {FORMER_FOLDERS.key}"))
    return found


def statistics_files(document: dict[str, Any]) -> Iterator[tuple[str, int | None]]:
    """Yield the statistics files of a metadata file, each with its length in bytes."""
    for name in _STATISTICS:
        for one in document.get(name) or ():
            yield one["statistics-path"], one.get("file-size-in-bytes")


def with_files(document: dict[str, Any], is_kept: Callable[[str], bool]) -> dict[str, Any]:
    """Return a metadata file's object with only some of its older versions and statistics."""
    chosen = {
        name: [one for one in document[name] if is_kept(one[member])]
        for name, member in (("metadata-log", "metadata-file"), *_STATISTICS_FILES)
        if document.get(name)
    }
    return {**document, **chosen}


def _snapshot(snapshot: dict[str, Any], rewritten: Callable[[str, str], str]) -> dict[str, Any]:
    changed = dict(snapshot)
    if "manifest-list" in snapshot:
        changed["manifest-list"] = rewritten(snapshot["manifest-list"], "manifest list")
    if snapshot.get("manifests"):
        # of format version 1
        changed["manifests"] = [rewritten(one, "manifest file") for one in snapshot["manifests"]]
    return changed
