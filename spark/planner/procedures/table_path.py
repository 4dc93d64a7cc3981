"""The procedure that copies a table's metadata for another location."""

from __future__ import annotations

from dataclasses import dataclass

from icecomb.spark.planner.procedures.call import Call
from icecomb.spark.planner.procedures.signature import Flag, Int, Text, as_row, procedure


@dataclass(frozen=True, slots=True)
class RewrittenPath:
    """The newest metadata file of the copy, the list of files, and numbers of rewritten files."""

    latest_version: Text | None
    file_list_location: Text | None
    rewritten_manifest_file_paths_count: Int | None
    rewritten_delete_file_paths_count: Int | None


@procedure
def rewrite_table_path(  # noqa: PLR0917 - the procedure's parameters
    call: Call,
    table: Text,
    source_prefix: Text,
    target_prefix: Text,
    start_version: Text | None = None,
    end_version: Text | None = None,
    staging_location: Text | None = None,
    create_file_list: Flag = True,  # noqa: FBT002 - by Iceberg's name and default
) -> list[RewrittenPath]:
    """Write a copy of a table's metadata with another prefix in all paths, and list its files."""
    result = call.load(table).maintenance.rewrite_table_path(
        source_prefix,
        target_prefix,
        start_version=start_version,
        end_version=end_version,
        staging_location=staging_location,
        create_file_list=create_file_list,
    )
    return [as_row(RewrittenPath, result)]
