"""Other tables that are stored in the folder of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icecomb.format.errors import ValidationError
from icecomb.format.spec.metadata_file import read_metadata
from icecomb.format.storage.location import plain_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from icecomb.catalog.administration import CatalogAdmin
    from icecomb.catalog.identifier import Identifier
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO


def tables_in_folder(
    catalog: CatalogAdmin,
    name: Identifier,
    metadata: TableMetadata,
    io: FileIO,
    folder: str,
    *,
    anywhere: bool = False,
) -> Iterator[tuple[TableMetadata, str]]:
    """Yield other tables of the namespace in a table's folder, with their metadata files.

    They may share files with the table: two entries may name one metadata file. So do tables with
    its uuid, wherever they are stored by now.

    Args:
        anywhere: Whether to check tables of other namespaces, too, which may be many.
    """
    own: list[str] = []
    uuid = metadata.table_uuid
    for entry in catalog.entries_below(
        folder, None if anywhere else name[:-1], uuid=None if uuid is None else str(uuid)
    ):
        if entry.identifier == name:
            continue
        if entry.metadata_location is not None:
            yield read_metadata(io, entry.metadata_location), entry.metadata_location
            continue
        own = own or plain_texts([folder.rstrip("/")], io.properties)
        if plain_texts([entry.location.rstrip("/")], io.properties) == own:
            other, table = ".".join(entry.identifier), ".".join(name)
            raise ValidationError(
                f"It is unknown which files only {table} needs: its folder is that of table "
                f"{other} as well: {folder}",
                hint=f"drop the entry {other}, or give one of the two a folder of its own",
                table=table,
                path=folder,
            )
