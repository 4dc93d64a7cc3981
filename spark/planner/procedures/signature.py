"""Parameters and result columns of procedures, from the annotations of their functions.

A procedure is a function of a `Call` and of its own parameters, in Iceberg's order; its result is a
list of dataclasses, whose members are the columns:

    @procedure
    def fast_forward(call: Call, table: Text, branch: Text, to: Text) -> list[FastForwarded]:
        \"\"\"Move a branch to where another one is, of which it is an ancestor.\"\"\"

A parameter with a default is optional, and a null stands for that default, as in Iceberg.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from icecomb.format.errors import ValidationError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_R = TypeVar("_R", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, eq=False)
class SqlType:
    """A Spark type; `read` converts JSON to Python, with `ValueError` for another type."""

    name: str
    json: Any
    read: Callable[[Any], Any]


def _scalar(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        # bool is a subclass of int
        if type(value) is not kind:
            raise ValueError(value)
        return value

    return read


def _array(element: SqlType) -> SqlType:
    json = {"type": "array", "elementType": element.json, "containsNull": True}
    read_list, read = _scalar(list), element.read
    return SqlType(
        f"array<{element.name}>", json, lambda value: tuple(read(e) for e in read_list(value))
    )


def _strings(value: Any) -> dict[str, str]:
    read, found = _scalar(str), _scalar(dict)(value)
    return {read(key): read(each) for key, each in found.items()}


_TEXT: Final = SqlType("string", "string", _scalar(str))
_LONG: Final = SqlType("bigint", "long", _scalar(int))
_MAP: Final = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}

Text: TypeAlias = Annotated[str, _TEXT]
Flag: TypeAlias = Annotated[bool, SqlType("boolean", "boolean", _scalar(bool))]
Int: TypeAlias = Annotated[int, SqlType("int", "integer", _scalar(int))]
Long: TypeAlias = Annotated[int, _LONG]
Instant: TypeAlias = Annotated[int, SqlType("timestamp", "timestamp", _scalar(int))]
"""Microseconds since 1970 UTC."""
Texts: TypeAlias = Annotated[tuple[str, ...], _array(_TEXT)]
Longs: TypeAlias = Annotated[tuple[int, ...], _array(_LONG)]
Options: TypeAlias = Annotated[Mapping[str, str], SqlType("map<string,string>", _MAP, _strings)]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter, or a column of the result.

    Args:
        required: Whether it must be given, and not as null.
        default: The value if it is null or not given.
    """

    name: str
    type: SqlType
    required: bool
    default: Any = None


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure.

    Args:
        description: One sentence.
        columns: The columns of the result.
        run: The function, called with a `Call` and arguments by name; its rows are dataclasses.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    columns: tuple[Parameter, ...]
    run: Callable[..., Sequence[Any]]

    def bind(self, arguments: Sequence[tuple[str | None, Any]]) -> dict[str, Any]:
        """Return the values of all parameters.

        Args:
            arguments: JSON values in the order of the statement, each with its name or, those by
                position, without; see `icecomb.spark.values` for their forms.
        """
        given: dict[str, Any] = {}
        known = {parameter.name: parameter for parameter in self.parameters}
        by_name = False
        for position, (name, value) in enumerate(arguments):
            if by_name and name is None:
                raise self._refused("arguments by position come before those by name")
            by_name = name is not None
            target = self._target(position, name)
            if target in given:
                raise self._refused(f"its argument {target} is given twice")
            given[target] = self._value(known[target], value)
        for parameter in self.parameters:
            if parameter.required and given.get(parameter.name) is None:
                how = "is null" if parameter.name in given else "is missing"
                raise self._refused(f"its argument {parameter.name} {how}")
        return {
            p.name: p.default if given.get(p.name) is None else given[p.name]
            for p in self.parameters
        }

    def signature(self) -> str:
        """Return the procedure's call with types; optional parameters are in square brackets."""
        shown = (f"{p.name} {p.type.name}" for p in self.parameters)
        marked = (
            text if p.required else f"[{text}]"
            for text, p in zip(shown, self.parameters, strict=True)
        )
        return f"{self.name}({', '.join(marked)})"

    def _target(self, position: int, name: str | None) -> str:
        if name is None:
            if position >= len(self.parameters):
                raise self._refused(f"it takes {len(self.parameters)} arguments at most")
            return self.parameters[position].name
        for parameter in self.parameters:
            if parameter.name.lower() == name.lower():
                return parameter.name
        raise self._refused(f"it has no argument {name}")

    def _value(self, parameter: Parameter, value: Any) -> Any:
        if value is None:
            return None
        try:
            return parameter.type.read(value)
        except ValueError as error:
            found = "null" if error.args == (None,) else repr(error.args[0])
            raise self._refused(
                f"its argument {parameter.name} is {parameter.type.name}, not {found}"
            ) from None

    def _refused(self, what: str) -> ValidationError:
        return ValidationError(
            f"Procedure {self.name} cannot be called: {what}",
            hint=f"Call it as {self.signature()}",
        )


def procedure(function: Callable[..., Sequence[Any]]) -> Procedure:
    """Declare a function as a procedure; see the module."""
    hints = get_type_hints(function, include_extras=True)
    (row,) = get_args(hints["return"])
    columns = get_type_hints(row, include_extras=True)
    first, *parameters = inspect.signature(function).parameters.values()
    del first  # the Call
    return Procedure(
        function.__name__,
        (inspect.getdoc(function) or "").partition("\n")[0],
        tuple(
            Parameter(p.name, _type(hints[p.name])[0], p.default is p.empty, _default(p))
            for p in parameters
        ),
        tuple(Parameter(name.name, *_type(columns[name.name])) for name in dataclasses.fields(row)),
        function,
    )


def as_row(kind: type[_R], result: Any) -> _R:
    """Convert a result of another layer to a row with its members of the same names."""
    names = [column.name for column in dataclasses.fields(kind)]
    return kind(**{name: getattr(result, name) for name in names})


def _default(parameter: inspect.Parameter) -> Any:
    return None if parameter.default is parameter.empty else parameter.default


def _type(hint: Any) -> tuple[SqlType, bool]:
    """Return the type of an annotation, and whether it is never null."""
    if get_origin(hint) in (Union, types.UnionType):
        given = next(part for part in get_args(hint) if part is not types.NoneType)
        return _type(given)[0], False
    sql: SqlType = hint.__metadata__[0]
    return sql, True
