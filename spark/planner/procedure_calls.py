"""Procedures as the protocol asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import ValidationError
from icecomb.format.property import nearest
from icecomb.spark.planner.catalogs import Catalogs
from icecomb.spark.planner.protocol import (
    CallProcedure,
    ListProcedures,
    LoadProcedure,
    ProcedureDescription,
    ProcedureNames,
    ProcedureParameter,
    ProcedureResult,
    TableName,
)

if TYPE_CHECKING:
    from icecomb.spark.planner.procedures.signature import Parameter, Procedure

_NAMESPACE: Final = ("system",)


class Procedures:
    """The methods of the protocol that name a procedure."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    def list_procedures(self, request: ListProcedures) -> ProcedureNames:
        """See `ListProcedures`; all of a catalog's where no namespace is named."""
        self._catalogs[request.catalog]
        if request.namespace not in {(), _NAMESPACE}:
            return ProcedureNames(())
        return ProcedureNames(tuple(TableName(_NAMESPACE, name) for name in sorted(_procedures())))

    def load_procedure(self, request: LoadProcedure) -> ProcedureDescription:
        """See `LoadProcedure`."""
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

    def call_procedure(self, request: CallProcedure) -> ProcedureResult:
        """See `CallProcedure`."""
        from icecomb.spark.planner.procedures.call import Call

        found = find(request.procedure.namespace, request.procedure.name)
        values = found.bind([(argument.name, argument.value) for argument in request.arguments])
        opened = self._catalogs[request.catalog]
        here = request.current.catalog == opened.name
        call = Call(
            opened,
            request.current.namespace if here else ("default",),
            self._catalogs.metastore(request.catalog),
            self._catalogs.engine(request.catalog),
            case_sensitive=request.case_sensitive,
        )
        rows = found.run(call, **values)
        names = [column.name for column in found.columns]
        return ProcedureResult(
            tuple([getattr(row, name) for name in names] for row in rows),
            tuple(call.statements),
        )


def find(namespace: tuple[str, ...], name: str) -> Procedure:
    """The procedure of a name, in any case of letters.

    Raises:
        ValidationError: There is none.
    """
    lowered = tuple(part.lower() for part in namespace)
    known = _procedures()
    found = known.get(name.lower()) if lowered == _NAMESPACE else None
    if found is None:
        meant = nearest(name, known)
        raise ValidationError(
            f"There is no procedure {'.'.join((*namespace, name))}",
            hint=f"did you mean system.{meant}?"
            if meant
            else "SHOW PROCEDURES lists those there are, in the namespace system",
        )
    return found


def _procedures() -> Mapping[str, Procedure]:
    """What they need is a sixth of what the planner imports: it comes with the first of them."""
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
