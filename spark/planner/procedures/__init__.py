"""Procedures for CALL in the namespace ``system``, under Iceberg's names.

A new one is a function with the decorator `procedure`, listed here; Spark and `DESCRIBE PROCEDURE`
get the rest from its signature.
"""

from __future__ import annotations

from typing import Final

from icecomb.spark.planner.procedures.changelog import create_changelog_view
from icecomb.spark.planner.procedures.columns import undelete_column
from icecomb.spark.planner.procedures.files import add_files, migrate, register_table, snapshot
from icecomb.spark.planner.procedures.maintenance import (
    compute_partition_stats,
    compute_table_stats,
    convert_equality_deletes,
    expire_snapshots,
    remove_orphan_files,
    rewrite_data_files,
    rewrite_manifests,
    rewrite_position_delete_files,
)
from icecomb.spark.planner.procedures.signature import Procedure
from icecomb.spark.planner.procedures.snapshots import (
    ancestors_of,
    cherrypick_snapshot,
    fast_forward,
    publish_changes,
    rollback_to_snapshot,
    rollback_to_timestamp,
    set_current_snapshot,
)
from icecomb.spark.planner.procedures.table_path import rewrite_table_path

PROCEDURES: Final[dict[str, Procedure]] = {
    one.name: one
    for one in (
        add_files,
        ancestors_of,
        cherrypick_snapshot,
        compute_partition_stats,
        compute_table_stats,
        convert_equality_deletes,
        create_changelog_view,
        expire_snapshots,
        fast_forward,
        migrate,
        publish_changes,
        register_table,
        remove_orphan_files,
        rewrite_data_files,
        rewrite_manifests,
        rewrite_position_delete_files,
        rewrite_table_path,
        rollback_to_snapshot,
        rollback_to_timestamp,
        set_current_snapshot,
        snapshot,
        undelete_column,
    )
}
