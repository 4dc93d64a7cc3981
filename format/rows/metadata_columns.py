"""Columns a scan can select that stand in no file (spec: Reserved Field IDs)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from icecomb.format.types import IntegerType, LongType, NestedField, StringType

FILE_PATH: Final = NestedField(
    2147483646,
    "_file",
    StringType(),
    required=True,
    doc="Path of the file in which a row is stored",
)
ROW_POSITION: Final = NestedField(
    2147483645, "_pos", LongType(), required=True, doc="Ordinal position of a row in its file"
)
SPEC_ID: Final = NestedField(
    2147483643, "_spec_id", IntegerType(), required=True, doc="Spec id of the file of a row"
)

METADATA_COLUMNS: Final = MappingProxyType({f.name: f for f in (FILE_PATH, ROW_POSITION, SPEC_ID)})
"""The metadata columns by name."""

DELETE_FILE_PATH: Final = NestedField(2147483546, "file_path", StringType(), required=True)
"""The path column of a position delete file."""
DELETE_FILE_POS: Final = NestedField(2147483545, "pos", LongType(), required=True)
"""The position column of a position delete file."""
