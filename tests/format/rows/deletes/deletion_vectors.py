"""Puffin files with deletion vectors, made byte by byte."""

from __future__ import annotations

import zlib
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


def runs_of(containers: int) -> bytes:
    """Return a vector of full containers in runs: of 14 bytes each, 65,536 positions."""
    flags = b"\xff" * (containers // 8) + bytes([(1 << containers % 8) - 1])[: containers % 8]
    keys = b"".join(at.to_bytes(2, "little") + b"\xff\xff" for at in range(containers))
    start = 4 + len(flags) + 8 * containers
    offsets = b"".join((start + 6 * at).to_bytes(4, "little") for at in range(containers))
    head = (12347 | (containers - 1) << 16).to_bytes(4, "little")
    bitmap = head + flags + keys + offsets + b"\x01\0\0\0\xff\xff" * containers
    rest = b"\xd1\xd3\x39\x64" + (1).to_bytes(8, "little") + bytes(4) + bitmap
    return len(rest).to_bytes(4, "big") + rest + zlib.crc32(rest).to_bytes(4, "big")
