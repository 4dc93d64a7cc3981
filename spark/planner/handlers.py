"""The methods of the protocol and who answers them."""

from __future__ import annotations

from icecomb.spark.planner.catalogs import Catalogs
from icecomb.spark.planner.deletes import Deletes
from icecomb.spark.planner.scan import Scans
from icecomb.spark.planner.staging import StagedTables
from icecomb.spark.planner.states import TableStates
from icecomb.spark.planner.tables import Tables
from icecomb.spark.planner.transport import Handler
from icecomb.spark.planner.write import Writes


def handlers() -> dict[str, Handler]:
    """Every method by its name, over one set of open catalogs."""
    catalogs = Catalogs()
    states = TableStates(catalogs)
    staged = StagedTables()
    tables = Tables(catalogs, states, staged)
    scans = Scans(states)
    writes = Writes(catalogs, states, staged)
    deletes = Deletes(catalogs, states)
    return {
        "open_catalog": catalogs.open_catalog,
        "list_namespaces": catalogs.list_namespaces,
        "load_namespace": catalogs.load_namespace,
        "create_namespace": catalogs.create_namespace,
        "alter_namespace": catalogs.alter_namespace,
        "drop_namespace": catalogs.drop_namespace,
        "list_tables": tables.list_tables,
        "table_exists": tables.table_exists,
        "load_table": tables.load_table,
        "create_table": tables.create_table,
        "stage_table": tables.stage_table,
        "alter_table": tables.alter_table,
        "drop_table": tables.drop_table,
        "rename_table": tables.rename_table,
        "plan_scan": scans.plan_scan,
        "begin_write": writes.begin_write,
        "commit_write": writes.commit_write,
        "abort_write": writes.abort_write,
        "commit_staged": writes.commit_staged,
        "abort_staged": writes.abort_staged,
        "can_delete_where": deletes.can_delete_where,
        "delete_where": deletes.delete_where,
    }
