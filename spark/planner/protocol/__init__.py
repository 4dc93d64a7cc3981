"""Every request of the bridge and every answer of the planner, member by member.

A request's class is named as its method: `PlanScan` is ``plan_scan``. The bridge has the same
messages as records, in ``Protocol.java``; a test compares the two. What only one side can read
travels through the other as `Any`: Spark's schemas, filters and transforms have modules of their
own on both sides (`predicates`, `partitioning`, `alterations`; ``Condition``, ``Transforms``,
``Changes``), and `Reference`, `WriteState` and `FileEntry` are the planner's own words, which the
bridge hands back as it got them.
"""

from __future__ import annotations

from typing import Final

from icecomb.spark.planner.protocol.catalogs import (
    AlterNamespace,
    CreateNamespace,
    Done,
    DropNamespace,
    Dropped,
    Environment,
    ListNamespaces,
    LoadNamespace,
    NamespaceProperties,
    Namespaces,
    OpenCatalog,
    OpenedCatalog,
)
from icecomb.spark.planner.protocol.scans import (
    DeleteFile,
    EqualityDeletes,
    FileEntry,
    FileRange,
    KeyColumns,
    PlannedFile,
    PlanScan,
    PositionDeleteFiles,
    ReadRows,
    Rows,
    ScanPlan,
    ScanStatistics,
    SplitHints,
)
from icecomb.spark.planner.protocol.tables import (
    AlterTable,
    Audit,
    CreateTable,
    DropTable,
    Exists,
    ListTables,
    LoadTable,
    Reference,
    RenameTable,
    StageTable,
    TableDefinition,
    TableDescription,
    TableExists,
    TableName,
    TableNames,
)
from icecomb.spark.planner.protocol.writes import (
    AbortStaged,
    AbortWrite,
    BeginWrite,
    CanDeleteWhere,
    CommitStaged,
    CommitWrite,
    DataLocation,
    DeleteWhere,
    PartitionColumn,
    Possible,
    Replaced,
    SortField,
    WriteInstructions,
    WriteState,
    WrittenFile,
)

PROTOCOL: Final = 7
"""The version of all this, part of the greeting: bridge and planner must agree."""

__all__ = [
    "PROTOCOL",
    "AbortStaged",
    "AbortWrite",
    "AlterNamespace",
    "AlterTable",
    "Audit",
    "BeginWrite",
    "CanDeleteWhere",
    "CommitStaged",
    "CommitWrite",
    "CreateNamespace",
    "CreateTable",
    "DataLocation",
    "DeleteFile",
    "DeleteWhere",
    "Done",
    "DropNamespace",
    "DropTable",
    "Dropped",
    "Environment",
    "EqualityDeletes",
    "Exists",
    "FileEntry",
    "FileRange",
    "KeyColumns",
    "ListNamespaces",
    "ListTables",
    "LoadNamespace",
    "LoadTable",
    "NamespaceProperties",
    "Namespaces",
    "OpenCatalog",
    "OpenedCatalog",
    "PartitionColumn",
    "PlanScan",
    "PlannedFile",
    "PositionDeleteFiles",
    "Possible",
    "ReadRows",
    "Reference",
    "RenameTable",
    "Replaced",
    "Rows",
    "ScanPlan",
    "ScanStatistics",
    "SortField",
    "SplitHints",
    "StageTable",
    "TableDefinition",
    "TableDescription",
    "TableExists",
    "TableName",
    "TableNames",
    "WriteInstructions",
    "WriteState",
    "WrittenFile",
]
