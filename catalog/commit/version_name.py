"""Names of metadata files: by version in a file-system table, else by their catalog."""

from __future__ import annotations

import re
from typing import Final

METADATA_SUFFIXES: Final = (".metadata.json", ".metadata.json.gz")
"""Suffixes of metadata files' names, in any kind of table."""
VERSION_HINT: Final = "version-hint.text"
VERSION_NUMBER: Final = r"(0|[1-9][0-9]{0,17})"
UNPUBLISHED: Final = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.gz)?\.metadata\.json(\.gz)?"
)
"""Names of metadata that Iceberg Java wrote for a file-system table and has not renamed yet."""

_NAME: Final = re.compile(
    rf"v{VERSION_NUMBER}(?:\.gz)?\.metadata\.json|v{VERSION_NUMBER}\.metadata\.json\.gz"
)


def version_of(location: str) -> int | None:
    """Return the version in a file-system table's metadata file name; None for other names."""
    match = _NAME.fullmatch(location.rpartition("/")[2])
    return int(match[1] or match[2]) if match else None
