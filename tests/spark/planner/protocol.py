"""The planner's protocol as the bridge speaks it, without the process and the JVM."""

from __future__ import annotations

import json

from icecomb.spark.planner.handlers import handlers

HINTS = {
    "parallelism": 2,
    "split_bytes": 1 << 27,
    "open_cost_bytes": 1 << 22,
    "max_split_bytes_set": False,
}
NO_AUDIT = {"wap_id": None, "wap_branch": None}
NAMESPACE = ["planner_tests"]


class Planner:
    """The planner's methods without the process around them; every answer goes through JSON."""

    def __init__(self, metastore):
        self._methods = handlers()
        options = {"uri": metastore.uri, "warehouse": str(metastore.warehouse), "python": "p"}
        self.catalog = self.ask(
            "open_catalog", name="lake", options=options, environment={"spark.version": "4.3.0"}
        )["catalog"]

    def ask(self, method, **params):
        if method in {"load_table", "begin_write", "delete_where"}:
            params = {"audit": NO_AUDIT, **params}
        return json.loads(json.dumps(self._methods[method](params), allow_nan=False))

    def load(self, name, **version):
        asked = {"version": None, "timestamp_us": None, **version}
        return self.ask("load_table", catalog=self.catalog, namespace=NAMESPACE, name=name, **asked)

    def plan(self, table, *filters, columns=None, **options):
        fields = [f for f in table["schema"]["fields"] if columns is None or f["name"] in columns]
        return self.ask(
            "plan_scan",
            reference=table["reference"],
            schema={"type": "struct", "fields": fields},
            filters=list(filters),
            case_sensitive=False,
            hints=HINTS,
            options=options,
        )
