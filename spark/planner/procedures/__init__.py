"""Procedures for CALL in the namespace ``system``, under Iceberg's names.

A new one is a function with the decorator `procedure` in one of the modules listed here, or an
action of maintenance; Spark and `DESCRIBE PROCEDURE` get the rest from its declaration.
"""

from __future__ import annotations

from typing import Final

from icecomb.spark.planner.procedures import changelog, files, snapshots
from icecomb.spark.planner.procedures.maintenance import MAINTENANCE
from icecomb.spark.planner.procedures.signature import Procedure

PROCEDURES: Final[dict[str, Procedure]] = MAINTENANCE | {
    name: one
    for module in (changelog, files, snapshots)
    for name, one in vars(module).items()
    if isinstance(one, Procedure)
}
