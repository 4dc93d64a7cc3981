"""The handlers of the protocol's methods."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator, Iterator
from itertools import chain
from typing import Any

from icecomb.spark.planner.changes.changelogs import Changelogs
from icecomb.spark.planner.procedures.procedure_calls import Procedures
from icecomb.spark.planner.protocol.message import Message, Request
from icecomb.spark.planner.scan.metadata_rows import MetadataRows
from icecomb.spark.planner.scan.push_down import PushDown
from icecomb.spark.planner.scan.scan import Scans
from icecomb.spark.planner.session.session_work import PendingWorks
from icecomb.spark.planner.streams import Streams
from icecomb.spark.planner.table.catalogs import Catalogs
from icecomb.spark.planner.table.states import TableStates
from icecomb.spark.planner.table.tables import StagedTables, Tables
from icecomb.spark.planner.table.views import PlannerViews
from icecomb.spark.planner.transport import Answer, Handler
from icecomb.spark.planner.write.deletes import Deletes
from icecomb.spark.planner.write.write import Writes


def handlers() -> dict[str, Handler]:
    """Return the handlers of all requests by name, over one set of open catalogs.

    `PlanScan` is answered by the method `plan_scan` whose argument `request` is one.
    """
    catalogs = Catalogs()
    states = TableStates(catalogs)
    staged = StagedTables()
    works = PendingWorks()
    serving = (
        catalogs,
        Tables(catalogs, states, staged),
        PlannerViews(catalogs),
        Procedures(catalogs, works),
        PushDown(states),
        Scans(states, works),
        Streams(states),
        MetadataRows(states),
        Writes(catalogs, states, staged, works),
        Changelogs(states),
        Deletes(catalogs, states),
    )
    return dict(chain.from_iterable(map(_served, serving)))


def _served(serving: object) -> Iterator[tuple[str, Handler]]:
    """Yield the handlers, from JSON to JSON, of an object's methods that answer a request."""
    for name, method in inspect.getmembers(type(serving), inspect.isfunction):
        asked = method.__annotations__.get("request", "")
        if re.sub(r"(?<=.)([A-Z])", r"_\1", asked).lower() == name:
            yield name, _handler(method.__globals__[asked], getattr(serving, name))


def _handler(
    request: type[Request], serve: Callable[[Any], Message | Generator[Message, None, Message]]
) -> Handler:
    def answer(params: dict[str, Any]) -> Answer:
        found = serve(request.parse(params))
        return found.to_json() if isinstance(found, Message) else _paged(found)

    return answer


def _paged(messages: Generator[Message, None, Message]) -> Generator[Any, None, Any]:
    while True:
        try:
            page = next(messages)
        except StopIteration as end:
            return end.value.to_json()
        yield page.to_json()
