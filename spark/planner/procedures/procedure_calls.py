"""The protocol's methods for procedures."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import ValidationError
from icecomb.format.property.property import nearest
from icecomb.spark.planner.protocol.catalogs import Done
from icecomb.spark.planner.protocol.procedures import (
    CallProcedure,
    EndWork,
    ListProcedures,
    LoadProcedure,
    ProcedureDescription,
    ProcedureNames,
    ProcedurePage,
    ProcedureParameter,
    ProcedureResult,
    SessionListing,
    SessionQuery,
    SessionWork,
)
from icecomb.spark.planner.protocol.tables import TableName
from icecomb.spark.planner.session.conversation import Conversation
from icecomb.spark.planner.session.session_rewrites import SessionEngine
from icecomb.spark.planner.session.session_work import (
    ListingSession,
    PendingWorks,
    SketchingSession,
    query,
)
from icecomb.spark.planner.table.catalogs import Catalogs

if TYPE_CHECKING:
    from icecomb.spark.planner.procedures.signature import Parameter, Procedure
    from icecomb.spark.planner.session.conversation import Asked

_NAMESPACE: Final = ("system",)
_PAGE_ROWS: Final = 5_000


class Procedures:
    """The protocol's methods that name a procedure."""

    def __init__(self, catalogs: Catalogs, works: PendingWorks) -> None:
        self._catalogs = catalogs
        self._works = works

    def list_procedures(self, request: ListProcedures) -> ProcedureNames:
        """Answer `ListProcedures`: all of a catalog's if no namespace is named."""
        self._catalogs[request.catalog]
        if request.namespace not in {(), _NAMESPACE}:
            return ProcedureNames(())
        return ProcedureNames(tuple(TableName(_NAMESPACE, name) for name in sorted(_procedures())))

    def load_procedure(self, request: LoadProcedure) -> ProcedureDescription:
        found = find(request.procedure.namespace, request.procedure.name)
        columns = ", ".join(f"{column.name} {column.type.name}" for column in found.columns)
        return ProcedureDescription(
            found.name,
            f"{found.description} {found.signature()} gives {columns}",
            tuple(
                ProcedureParameter(p.name, p.type.json, None if p.required else _sql(p.default))
                for p in found.parameters
            ),
            {"type": "struct", "fields": [_column(column) for column in found.columns]},
        )

    def call_procedure(
        self, request: CallProcedure
    ) -> Generator[ProcedurePage, None, ProcedureResult]:
        from icecomb.catalog.maintenance import SessionEngines
        from icecomb.spark.planner.procedures.call import Call

        found = find(request.procedure.namespace, request.procedure.name)
        values = found.bind([(argument.name, argument.value) for argument in request.arguments])
        opened = self._catalogs[request.catalog]
        here = request.current.catalog == opened.name
        conversation = Conversation()
        call = Call(
            opened,
            request.current.namespace if here else ("default",),
            SessionEngines(
                SessionEngine(self._works, opened.name, conversation),
                ListingSession(self._works, conversation),
                SketchingSession(self._works, opened.name, conversation),
            ),
            partial(query, self._works, conversation),
            self._catalogs.metastore(request.catalog),
            self._catalogs.application(request.catalog),
            case_sensitive=request.case_sensitive,
            settings=request.settings,
        )
        running = conversation.run(partial(found.run, call, **values))
        rows = yield from _asked(running)
        for start in range(0, len(rows), _PAGE_ROWS):
            shown = tuple(map(list, rows[start : start + _PAGE_ROWS]))
            yield ProcedurePage(shown, (), (), (), ())
        return ProcedureResult(tuple(call.refreshed), call.views)

    def end_work(self, request: EndWork) -> Done:
        self._catalogs[request.catalog]
        self._works.end(request.work, request.problem)
        return Done()


def _asked(
    running: Generator[Asked, None, Sequence[Any]],
) -> Generator[ProcedurePage, None, Sequence[Any]]:
    """Yield pages of what a procedure asks of its session; return its rows."""
    while True:
        try:
            work = next(running)
        except StopIteration as end:
            rows: Sequence[Any] = end.value
            return rows
        if isinstance(work, SessionWork):
            yield ProcedurePage((), (work,), (), (), ())
        elif isinstance(work, SessionQuery):
            yield ProcedurePage((), (), (work,), (), ())
        elif isinstance(work, SessionListing):
            yield ProcedurePage((), (), (), (work,), ())
        else:
            yield ProcedurePage((), (), (), (), (work,))


def find(namespace: tuple[str, ...], name: str) -> Procedure:
    """Find a procedure by its name, case-insensitively."""
    lowered = tuple(part.lower() for part in namespace)
    known = _procedures()
    found = known.get(name.lower()) if lowered == _NAMESPACE else None
    if found is None:
        meant = nearest(name, known)
        raise ValidationError(
            f"There is no procedure {'.'.join((*namespace, name))}",
            hint=f"Did you mean system.{meant}?"
            if meant
            else "SHOW PROCEDURES lists those there are, in the namespace system.",
        )
    return found


def _procedures() -> Mapping[str, Procedure]:
    """Return all procedures, imported on first use: they are a sixth of the planner's imports."""
    from icecomb.spark.planner.procedures import PROCEDURES

    return PROCEDURES


def _column(column: Parameter) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type.json,
        "nullable": not column.required,
        "metadata": {},
    }


def _sql(default: Any) -> str:
    return "NULL" if default is None else str(default).lower()
