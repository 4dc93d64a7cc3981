"""The table of arguments in docs/procedure-arguments.md: ``python -m tests.procedure_table --write``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from icecomb.spark.planner.procedures import PROCEDURES
from icecomb.spark.planner.procedures.signature import Parameter, Procedure

PAGE = Path(__file__).resolve().parent.parent / "docs" / "procedure-arguments.md"
_PLACE = re.compile(r"(?<=<!-- arguments -->\n\n).*?(?=\n\n<!-- end -->)", re.DOTALL)
ICEBERG = {
    "add_files": "table! string, source_table! string, partition_filter map<string,string>, "
    "check_duplicate_files boolean, parallelism int -> added_files_count bigint, "
    "changed_partition_count bigint?",
    "ancestors_of": "table! string, snapshot_id bigint -> snapshot_id bigint?, timestamp bigint?",
    "cherrypick_snapshot": "table! string, snapshot_id! bigint -> source_snapshot_id bigint, current_snapshot_id "
    "bigint",
    "compute_partition_stats": "table! string, snapshot_id bigint -> partition_statistics_file string?",
    "compute_table_stats": "table! string, snapshot_id bigint, columns array<string> -> statistics_file string?",
    "create_changelog_view": "table! string, changelog_view string, options map<string,string>, compute_updates "
    "boolean, identifier_columns array<string>, net_changes boolean -> changelog_view "
    "string",
    "expire_snapshots": "table! string, older_than timestamp, retain_last int, max_concurrent_deletes int, "
    "stream_results boolean, snapshot_ids array<bigint>, clean_expired_metadata boolean -> "
    "deleted_data_files_count bigint?, deleted_position_delete_files_count bigint?, "
    "deleted_equality_delete_files_count bigint?, deleted_manifest_files_count bigint?, "
    "deleted_manifest_lists_count bigint?, deleted_statistics_files_count bigint?",
    "fast_forward": "table! string, branch! string, to! string -> branch_updated string, previous_ref "
    "bigint?, updated_ref bigint",
    "migrate": "table! string, properties map<string,string>, drop_backup boolean, backup_table_name "
    "string, parallelism int, ignore_missing_files boolean -> migrated_files_count bigint",
    "publish_changes": "table! string, wap_id! string -> source_snapshot_id bigint, current_snapshot_id bigint",
    "register_table": "table! string, metadata_file! string -> current_snapshot_id bigint?, "
    "total_records_count bigint?, total_data_files_count bigint?",
    "remove_orphan_files": "table! string, older_than timestamp, location string, dry_run boolean, "
    "max_concurrent_deletes int, file_list_view string, equal_schemes map<string,string>, "
    "equal_authorities map<string,string>, prefix_mismatch_mode string, prefix_listing "
    "boolean, stream_results boolean -> orphan_file_location string",
    "rewrite_data_files": "table! string, strategy string, sort_order string, options map<string,string>, where "
    "string, branch string -> rewritten_data_files_count int, added_data_files_count int, "
    "rewritten_bytes_count bigint, failed_data_files_count int, removed_delete_files_count "
    "int",
    "rewrite_manifests": "table! string, use_caching boolean, spec_id int, sort_by array<string> -> "
    "rewritten_manifests_count int, added_manifests_count int",
    "rewrite_position_delete_files": "table! string, options map<string,string>, where string -> "
    "rewritten_delete_files_count int, added_delete_files_count int, rewritten_bytes_count "
    "bigint, added_bytes_count bigint",
    "rewrite_table_path": "table! string, source_prefix! string, target_prefix! string, start_version string, "
    "end_version string, staging_location string, create_file_list boolean -> "
    "latest_version string?, file_list_location string?, "
    "rewritten_manifest_file_paths_count int?, rewritten_delete_file_paths_count int?",
    "rollback_to_snapshot": "table! string, snapshot_id! bigint -> previous_snapshot_id bigint, current_snapshot_id "
    "bigint",
    "rollback_to_timestamp": "table! string, timestamp! timestamp -> previous_snapshot_id bigint, "
    "current_snapshot_id bigint",
    "set_current_snapshot": "table! string, snapshot_id bigint, ref string -> previous_snapshot_id bigint?, "
    "current_snapshot_id bigint",
    "snapshot": "source_table! string, table! string, location string, properties map<string,string>, "
    "parallelism int, ignore_missing_files boolean -> imported_files_count bigint",
}
"""What Iceberg 1.12's classes declare: arguments, `!` if required -> columns, `?` if they may be null."""
REFUSED = {
    "migrate.backup_table_name": "no backup table is made: its files would be those of the new "
    "table, and `icecomb migrate revert` gives the old one back",
}
"""Arguments of Iceberg's that are errors, and why."""
NO_EFFECT = {
    "expire_snapshots.max_concurrent_deletes": "files are deleted in bulk; below 1 it is an error",
    "expire_snapshots.stream_results": "names of files never get to Spark's driver",
    "remove_orphan_files.prefix_listing": "both ways of listing find the same files",
    "rewrite_manifests.use_caching": "entries of manifests are read once",
}
"""Arguments of Iceberg's that make no difference, and why."""
REMARKS = {
    "compute_partition_stats.snapshot_id": "of a table that is partitioned; others are refused, as "
    "by Iceberg",
    "create_changelog_view.net_changes": "not together with `compute_updates`, which "
    "`identifier_columns` set unless it is `false`",
    "migrate.drop_backup": "gives up the way back, as `icecomb migrate finalize`",
    "remove_orphan_files.older_than": "an age below 24 hours is refused, as by Iceberg",
    "remove_orphan_files.stream_results": "shows 20,000 files at most, as Iceberg",
    "rewrite_data_files.options": "all of Iceberg's, and `engine`: [maintenance.md](maintenance.md)",
    "rewrite_position_delete_files.options": "all of Iceberg's: [deletes.md](deletes.md)",
    "set_current_snapshot.ref": "instead of `snapshot_id`",
}
"""What else is to be known of arguments that work."""
PROPOSED = {"undelete_column": "proposed for Iceberg (apache/iceberg#17785), in no release of it"}
"""Procedures that Iceberg may get."""


def table() -> str:
    """One line for each argument of each procedure."""
    lines = ["| procedure | argument | type | status |", "| --- | --- | --- | --- |"]
    for name, procedure in sorted(PROCEDURES.items()):
        first = f"`{name}`"
        for parameter in procedure.parameters:
            shown = f"`{parameter.name}`{' (required)' if parameter.required else ''}"
            status = _status(name, parameter)
            lines.append(f"| {first} | {shown} | `{parameter.type.name}` | {status} |")
            first = ""
    return "\n".join(lines)


def in_page() -> str:
    """What the page says now."""
    found = _PLACE.search(PAGE.read_text())
    assert found is not None, "the page has lost the place of the table"
    return found[0]


def declared(procedure: Procedure) -> str:
    """A procedure in the form of `ICEBERG`, without the arguments that Iceberg's has not."""
    added = own(procedure.name)
    taken = ", ".join(
        f"{p.name}{'!' if p.required else ''} {p.type.name}"
        for p in procedure.parameters
        if p.name not in added
    )
    columns = procedure.columns
    given = ", ".join(f"{c.name} {c.type.name}{'' if c.required else '?'}" for c in columns)
    return f"{taken} -> {given}"


def own(procedure: str) -> list[str]:
    """The arguments of a procedure that Iceberg's has not."""
    taken, _, _ = ICEBERG.get(procedure, "").partition(" -> ")
    theirs = set(re.findall(r"(\w+)!? [a-z]", taken))
    return [p.name for p in PROCEDURES[procedure].parameters if p.name not in theirs]


def _status(name: str, parameter: Parameter) -> str:
    key = f"{name}.{parameter.name}"
    if key in REFUSED:
        return f"**refused**: {REFUSED[key]}"
    if key in NO_EFFECT:
        return f"no effect: {NO_EFFECT[key]}"
    if name in PROPOSED:
        return f"works; {PROPOSED[name]}" if parameter.name == "table" else "works"
    if name not in ICEBERG:
        return "works; only icecomb has this procedure" if parameter.name == "table" else "works"
    if parameter.name in own(name):
        return "works; only icecomb has this argument"
    return f"works; {REMARKS[key]}" if key in REMARKS else "works"


if __name__ == "__main__":
    if "--write" in sys.argv:
        written = table()
        PAGE.write_text(_PLACE.sub(lambda _: written, PAGE.read_text()))
    else:
        sys.stdout.write(f"{table()}\n")
