"""The planner's protocol as the bridge speaks it, without the process and the JVM."""

from __future__ import annotations

import getpass
import json
from collections.abc import Generator

from icecomb.spark.planner.handlers import handlers

NO_HINTS = {"parallelism": 2, "split_bytes": None, "open_cost_bytes": None}
NO_AUDIT = {"wap_id": None, "wap_branch": None}
MYSELF = {
    "user": getpass.getuser(),
    "real_user": None,
    "login": True,
    "secured": False,
    "tokens": [],
}
ENVIRONMENT = {
    "metastore_uris": None,
    "application_id": "a1",
    "spark_version": "4.3.0",
    "hadoop": {},
    "principal": None,
    "keytab": None,
    "application_name": "nightly",
}
NAMESPACE = ["planner_tests"]
DEFAULTS = {
    "load_table": {"version": None, "timestamp_us": None, "audit": NO_AUDIT},
    "plan_change": {"options": {}, "settings": {}, "keeps_metadata": True},
    "begin_write": {
        "command": None,
        "filters": [],
        "options": {},
        "settings": {},
        "audit": NO_AUDIT,
        "query": None,
        "rows": None,
        "case_sensitive": False,
        "queried": [],
    },
    "commit_write": {"replaced": None, "delta": None, "epoch": None, "merged": None},
    "commit_staged": {"write": None, "files": [], "read": []},
    "delete_where": {"settings": {}, "audit": NO_AUDIT},
}


class Planner:
    """The planner's methods without the process around them; every answer goes through JSON."""

    def __init__(self, metastore=None, **options):
        self._methods = handlers()
        if metastore is not None:
            options |= {"uri": metastore.uri, "warehouse": str(metastore.warehouse), "python": "p"}
        self.catalog = self.ask(
            "open_catalog", name="lake", options=options, environment=ENVIRONMENT, identity=MYSELF
        )["catalog"]

    @classmethod
    def in_folders(cls, catalog):
        """A planner of a catalog of file-system tables."""
        return cls(type="hadoop", warehouse=catalog.properties["warehouse"], python="p")

    def ask(self, method, **params):
        asked = json.loads(json.dumps({**DEFAULTS.get(method, {}), **params}))
        found = self._methods[method](asked)
        whole = _gathered(found) if isinstance(found, Generator) else found
        return json.loads(json.dumps(whole, allow_nan=False))

    def load(self, name, **more):
        return self.ask("load_table", **{"catalog": self.catalog, "table": named(name), **more})

    def plan(
        self,
        table,
        *filters,
        columns=None,
        changes=None,
        settings=None,
        limit=None,
        files=None,
        top=None,
        estimates=False,
        **options,
    ):
        fields = [f for f in table["schema"]["fields"] if columns is None or f["name"] in columns]
        return self.ask(
            "plan_scan",
            selection=selection(table, filters, options, settings),
            field_ids=[f["metadata"]["parquet.field.id"] for f in fields],
            hints=NO_HINTS,
            changes=changes,
            limit=limit,
            files=files,
            top=top,
            estimates_columns=estimates,
        )

    def aggregate(self, table, functions, *filters, group_by=(), settings=None, **options):
        """Functions are names with the names of a column, dots leading into structs, or with None."""
        return self.ask(
            "aggregate_files",
            selection=selection(table, filters, options, settings),
            group_by=[name.split(".") for name in group_by],
            functions=[
                {"name": name, "column": column and column.split(".")} for name, column in functions
            ],
        )["rows"]

    def decide(self, table, *filters, **options):
        return self.ask("decide_filters", selection=selection(table, filters, options))["whole"]


def selection(table, filters, options, settings=None):
    """What a query reads of a table."""
    return {
        "reference": table["reference"],
        "filters": list(filters),
        "case_sensitive": False,
        "options": options,
        "settings": settings or {},
    }


def _gathered(pages):
    """The lists of all pages, and the answer after them."""
    lists = {}
    while True:
        try:
            page = next(pages)
        except StopIteration as end:
            return {**lists, **end.value}
        for name, elements in page.items():
            lists.setdefault(name, []).extend(elements)


def named(name):
    """A table of the tests' namespace."""
    return {"namespace": NAMESPACE, "name": name}
