"""All requests of the bridge and answers of the planner.

A request's class is named like its method: `PlanScan` is ``plan_scan``. The bridge has the same
messages as records, in ``Protocol.java``, which `icecomb.spark.records` writes from these classes
when a jar is compiled. Values that only one side can read travel through the other as `Any`:
Spark's schemas, filters and transforms have modules of their own on both sides (`predicates`,
`partitioning`, `alterations`; ``Condition``, ``Transforms``, ``Changes``).
"""
