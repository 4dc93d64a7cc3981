"""A `pyarrow.fs` handler for HDFS: one name node call distinguishes files and folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyarrow import fs

from icecomb.format.errors import NoSuchFileError
from icecomb.format.storage.arrow_handler import ArrowHandler
from icecomb.format.storage.file_system import check_levels

if TYPE_CHECKING:
    from icecomb.format.storage.hdfs.file_system import HdfsFileSystem


class HdfsArrowHandler(ArrowHandler):
    """An `ArrowHandler` with fewer calls per operation."""

    def __init__(self, files: HdfsFileSystem) -> None:
        super().__init__(files, "hdfs")
        self._cluster = files.cluster

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """List a folder, and the folders below it if the selector is recursive."""
        root = selector.base_dir
        found: list[fs.FileInfo] = []
        left = [root]
        while left:
            folder = left.pop()
            check_levels(root, folder)
            web, address = self._cluster(folder)
            try:
                entries = web.entries(address.path, folder)
            except NoSuchFileError:
                if folder == root and not selector.allow_not_found:
                    raise
                continue
            for entry in entries:
                path = f"{folder.rstrip('/')}/{entry.name}"
                kind = fs.FileType.Directory if entry.is_folder else fs.FileType.File
                size = None if entry.is_folder else entry.size
                time_ns = entry.mtime_ms * 1_000_000
                found.append(fs.FileInfo(path, kind, size=size, mtime_ns=time_ns))
                if entry.is_folder and selector.recursive:
                    left.append(path)
        return found

    def create_dir(self, path: str, recursive: bool) -> None:  # noqa: ARG002, FBT001
        """Create a folder unless it exists."""
        web, address = self._cluster(path)
        web.make_folder(address.path, path)

    def delete_dir(self, path: str) -> None:
        """Delete a folder and everything in it."""
        web, address = self._cluster(path)
        web.delete(address.path, path, recursive=True)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:  # noqa: FBT001, FBT002
        """Delete everything in a folder."""
        web, address = self._cluster(path)
        try:
            entries = web.entries(address.path, path)
        except NoSuchFileError:
            if missing_dir_ok:
                return
            raise
        for entry in entries:
            web.delete(f"{address.path}/{entry.name}", path, recursive=True)

    def _info(self, path: str) -> fs.FileInfo:
        web, address = self._cluster(path)
        try:
            status = web.status(address.path, path)
        except NoSuchFileError:
            return fs.FileInfo(path, fs.FileType.NotFound)
        if status.is_folder:
            return fs.FileInfo(path, fs.FileType.Directory)
        return fs.FileInfo(
            path, fs.FileType.File, size=status.size, mtime_ns=status.mtime_ms * 1_000_000
        )
