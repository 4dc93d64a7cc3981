"""The actions of maintenance as data, from which `icecomb maintain` and CALL are made.

A new action is a method of `Maintenance` and an entry of `ACTIONS`; a new argument, one of the
method and one of the entry.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from icecomb.catalog.maintenance import Maintenance, SessionEngines
from icecomb.catalog.maintenance.expiry import expire_at_once

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table


@dataclass(frozen=True, slots=True)
class MaintenanceAction:
    """An action; types and defaults of its arguments are those of its method.

    Attributes:
        name: The method of `Maintenance`.
        help: The text of the command.
        options: The options of the command by their arguments, as its help shows them: name,
            metavariable or choices, two blanks, text. What has no default is given by position.
        procedure: The arguments of the procedure, `!` if required, and `->` the columns of its
            rows, `?` if they may be null; without it there is none.
        description: The text of the procedure.
        commits: Whether it may commit to the table.
    """

    name: str
    help: str
    options: Mapping[str, str]
    procedure: str = ""
    description: str = ""
    commits: bool = True

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters of the method besides the table, with their types as texts."""
        _, *rest = inspect.signature(self._method).parameters.values()
        return {parameter.name: parameter for parameter in rest}

    def of(self, table: Table, session: SessionEngines | None = None) -> Callable[..., Any]:
        """Return the method of a table, of which a session may do what is too much."""
        maintenance = Maintenance(table)
        maintenance._session = session or SessionEngines()  # noqa: SLF001 - not for users
        return partial(self._method, table if self._method is expire_at_once else maintenance)

    @property
    def _method(self) -> Callable[..., Any]:
        # that of `Maintenance` takes its arguments call by call
        own = {"expire_snapshots": expire_at_once}
        return own.get(self.name) or getattr(Maintenance, self.name)


_OLDER_THAN: Final = {
    "older_than": "--older-than TIME|AGE  "
    "Limit to what is older: 2024-05-01T12:00 (UTC), or an age such as 7d."
}
_SNAPSHOT: Final = {"snapshot": "--snapshot  The snapshot's id; by default the current one."}
_BRANCH: Final = {"branch": "--branch  The branch; by default main."}
_ENGINE: Final = {
    "engine": "--engine [auto|local|spark]  "
    "auto (default) and local run on this machine; spark is refused with an explanation."
}
_YES: Final = {"dry_run": "--yes  Do it; without --yes, only show what would happen."}
_GROUPS: Final = {
    **_BRANCH,
    "options": "--option NAME=VALUE  "
    "One of Iceberg's options, such as min-input-files=2; may be repeated.",
    **_ENGINE,
    "dry_run": "--dry-run  Only list the groups of files.",
}
_DELETES: Final = {
    "where": "--where PREDICATE  Limit to partitions that may hold such rows.",
    **_GROUPS,
}
_DELETE_COLUMNS: Final = (
    "rewritten_delete_files_count int, added_delete_files_count int, "
    "rewritten_bytes_count bigint, added_bytes_count bigint"
)

ACTIONS: Final = (
    MaintenanceAction(
        "expire_snapshots",
        "Remove old snapshots, and the files that only they need.\n\n"
        "By default the table's properties history.expire.* decide.",
        {
            **_OLDER_THAN,
            "retain_last": "--retain-last [x>=1]  Keep the last N snapshots of each branch.",
            "snapshot_ids": "--snapshot  Also remove this one; repeatable.",
            "clean_expired_metadata": "--clean-metadata  "
            "Also remove schemas and specs that nothing needs.",
            "outside": "--outside FOLDER  "
            "Also delete unneeded files there, outside of the table's folders; repeatable.",
            **_ENGINE,
            **_YES,
        },
        "table! string, older_than timestamp, retain_last int, max_concurrent_deletes int, "
        "stream_results boolean, snapshot_ids array<bigint>, clean_expired_metadata boolean, "
        "outside array<string>, engine string -> deleted_data_files_count bigint?, "
        "deleted_position_delete_files_count bigint?, deleted_equality_delete_files_count bigint?, "
        "deleted_manifest_files_count bigint?, deleted_manifest_lists_count bigint?, "
        "deleted_statistics_files_count bigint?",
        "Remove old snapshots, and the files that only they need.",
    ),
    MaintenanceAction(
        "rewrite_manifests",
        "Rewrite manifests, fewer and sorted by partition, so that scans read fewer of them.",
        {
            "spec_id": "--spec-id  The partition spec; by default that of new files.",
            "sort_by": "--sort-by  Partition fields separated by commas; by default all of them.",
            **_BRANCH,
            **_ENGINE,
        },
        "table! string, use_caching boolean = false, spec_id int, sort_by array<string>, "
        "engine string -> rewritten_manifests_count int, added_manifests_count int",
        "Rewrite the manifests of a partition spec, fewer and sorted by partition.",
    ),
    MaintenanceAction(
        "compute_table_stats",
        "Count the distinct values of columns, about, for query optimizers.\n\n"
        "Only appended rows are read where older statistics allow it. Needs the extra "
        "icecomb[statistics].",
        {
            "columns": "--columns  Columns separated by commas; by default all of primitive types.",
            **_SNAPSHOT,
            **_ENGINE,
        },
        "table! string, snapshot_id bigint, columns array<string>, engine string "
        "-> statistics_file string?",
        "Count the distinct values of columns, for query optimizers.",
    ),
    MaintenanceAction(
        "compute_partition_stats",
        "Count the files and rows of each partition, for `icecomb partitions` and Iceberg Java.\n\n"
        "Only what changed is read where older statistics allow it.",
        _SNAPSHOT,
        "table! string, snapshot_id bigint -> partition_statistics_file string?",
        "Count the files and rows of each partition.",
    ),
    MaintenanceAction(
        "rewrite_table_path",
        "Write a copy of the metadata with another prefix in all paths, and list files to copy.\n\n"
        "The table does not change. icecomb table relocate also copies the files.",
        {
            "start_version": "--start-version  "
            "The metadata file up to which files were copied before.",
            "end_version": "--end-version  "
            "The metadata file up to which to copy; by default the last.",
            "staging_location": "--staging-location  "
            "An empty folder for the copies; by default a new one.",
            "create_file_list": "--file-list/--no-file-list  List the files to copy.",
        },
        "table! string, source_prefix! string, target_prefix! string, start_version string, "
        "end_version string, staging_location string, create_file_list boolean = true "
        "-> latest_version string?, file_list_location string?, "
        "rewritten_manifest_file_paths_count int?, rewritten_delete_file_paths_count int?",
        "Write a copy of a table's metadata with another prefix in all paths, and list its files.",
        commits=False,
    ),
    MaintenanceAction(
        "rewrite_data_files",
        "Rewrite data files that are small, large, or have many deleted rows.\n\n"
        "Rows do not change, and old files stay until their snapshots expire. Others may read and "
        "write meanwhile. Exit code 1 if some files could not be rewritten.",
        {
            "strategy": "--strategy [binpack|sort]  "
            "binpack keeps the order of rows; by default sort if --sort-order is given.",
            "sort_order": "--sort-order ORDER  "
            "Such as 'a, b DESC NULLS LAST' or 'zorder(a, b)'; by default the table's.",
            "where": "--where PREDICATE  Rewrite only files that may hold such rows.",
            **_GROUPS,
        },
        "table! string, strategy string, sort_order string, options map<string,string>, "
        "where string, branch string -> rewritten_data_files_count int, "
        "added_data_files_count int, rewritten_bytes_count bigint, failed_data_files_count int, "
        "removed_delete_files_count int",
        "Rewrite data files that are small, large or have many deletes.",
    ),
    MaintenanceAction(
        "rewrite_position_delete_files",
        "Rewrite small and large position delete files, without deletes that apply to nothing.\n\n"
        "Exit code 1 if some files could not be rewritten.",
        _DELETES,
        f"table! string, options map<string,string>, where string -> {_DELETE_COLUMNS}",
        "Rewrite small and large position delete files.",
    ),
    MaintenanceAction(
        "convert_equality_deletes",
        "Convert equality deletes to position deletes, so that reading is faster.\n\n"
        "Exit code 1 if some files could not be converted.",
        _DELETES,
        f"table! string, where string, options map<string,string> -> {_DELETE_COLUMNS}, "
        "rewritten_equality_delete_files_count int",
        "Convert equality deletes to position deletes.",
    ),
    MaintenanceAction(
        "remove_orphan_files",
        "Find files in the table's folder that nothing refers to; with --yes delete them.\n\n"
        "Only files older than three days, or than --older-than. Files of other tables in the "
        "folder are skipped and listed. Exit code 1 if a file could not be deleted.",
        {
            **_OLDER_THAN,
            "location": "--location  A folder to search instead of the table's.",
            "files": "--list FILE  "
            "Check these files instead of listing the folder: lines of path, or of path,time.",
            "equal_schemes": "--equal-schemes S3A,S3N=S3  Schemes to treat as equal.",
            "equal_authorities": "--equal-authorities A,B=C  Clusters to treat as equal.",
            "prefix_mismatch_mode": "--prefix-mismatch-mode [ERROR|IGNORE|DELETE]  "
            "Files that metadata names under another scheme or cluster: stop, keep or delete them."
            "  [default: ERROR]",
            "quarantine": "--quarantine  Move the files to _icecomb_quarantine instead.",
            "any_age": "--any-age  Allow an age below 24 hours; safe only if nobody writes.",
            "max_concurrent_deletes": "--jobs [x>=1]  Batches deleted at once.",
            **_ENGINE,
            **_YES,
        },
        "table! string, older_than timestamp, location string, dry_run boolean = false, "
        "max_concurrent_deletes int, file_list_view string, equal_schemes map<string,string>, "
        "equal_authorities map<string,string>, prefix_mismatch_mode string, "
        "prefix_listing boolean = false, stream_results boolean = false, engine string "
        "-> orphan_file_location string",
        "Delete files in the folder of a table that nothing refers to.",
        commits=False,
    ),
    MaintenanceAction(
        "empty_quarantine",
        "Delete the files that remove-orphan-files --quarantine set aside before --older-than.",
        {**_OLDER_THAN, **_YES},
    ),
)
