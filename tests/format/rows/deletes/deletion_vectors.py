"""Puffin files with deletion vectors, made byte by byte."""

from __future__ import annotations

from pathlib import Path

from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat


def vector_file(
    path: Path,
    referenced: str,
    blob: bytes,
    count: int,
    *,
    before: bytes = b"PFA1",
    after: bytes = b"",
    **facts,
) -> DataFile:
    """Write a blob between other bytes, and return the entry of its manifest."""
    path.write_bytes(before + blob + after)
    told = {
        "content": DataFileContent.POSITION_DELETES,
        "file_path": str(path),
        "file_format": FileFormat.PUFFIN,
        "record_count": count,
        "file_size_in_bytes": len(before) + len(blob) + len(after),
        "referenced_data_file": referenced,
        "content_offset": len(before),
        "content_size_in_bytes": len(blob),
    }
    return DataFile(**told | facts)
