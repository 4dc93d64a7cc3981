"""Who the planner is to the storage."""

from __future__ import annotations

from icecomb.catalog.configuration.configuration import load_configuration
from icecomb.format.storage.file_io import FileIO
from icecomb.spark.planner.protocol import Environment, Identity
from icecomb.spark.planner.table.identity import acting_as


def test_where_nothing_is_secured_other_processes_may_work_for_a_user() -> None:
    environment = Environment(None, "application_1", "4.3.0", {})
    user = Identity("alice", None, login=True, secured=False, tokens=())
    found = acting_as(load_configuration("lake", {}), environment, user, "alice of a planner")
    assert FileIO(found.properties).is_portable
