"""All requests of the bridge and answers of the planner.

A request's class is named like its method: `PlanScan` is ``plan_scan``. The bridge has the same
messages as records, in ``Protocol.java``; a test compares the two. Values that only one side can
read travel through the other as `Any`: Spark's schemas, filters and transforms have modules of
their own on both sides (`predicates`, `partitioning`, `alterations`; ``Condition``, ``Transforms``,
``Changes``), and `Reference`, `WriteState` with its `StreamedWrite`, `FileEntry` and its
`DeleteEntry` are opaque to the bridge, which returns them unchanged.
"""
