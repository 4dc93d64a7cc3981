"""Procedures as the protocol asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import ValidationError
from icecomb.format.property import nearest
from icecomb.spark.planner.catalogs import Catalogs
from icecomb.spark.planner.protocol import (
    CallProcedure,
    CurrentNamespace,
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
        name = request.procedure
        arguments = [(argument.name, argument.value) for argument in request.arguments]
        return self.call(request.catalog, request.current, (*name.namespace, name.name), arguments)

    def call(
        self,
        catalog: str,
        current: CurrentNamespace,
        procedure: tuple[str, ...],
        arguments: Sequence[tuple[str | None, Any]],
    ) -> ProcedureResult:
        """Call a procedure, however the statement was parsed.

        Args:
            catalog: The catalog's handle.
            current: Of the session.
            procedure: Its name in the catalog, as ``("system", "expire_snapshots")``.
            arguments: See `Procedure.bind`.

        Raises:
            ValidationError: There is no such procedure, or it does not take these arguments.
        """
        from icecomb.spark.planner.procedures.call import Call

        found = find(procedure[:-1], procedure[-1])
        values = found.bind(arguments)
        opened = self._catalogs[catalog]
        here = current.catalog == opened.name
        call = Call(
            opened,
            current.namespace if here else ("default",),
            self._catalogs.metastore(catalog),
            self._catalogs.engine(catalog),
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
