"""Declarations of procedures: their parameters and the columns of their rows.

A procedure is a function of a `Call` and of its own parameters, which stand above it in Iceberg's
order, `!` if required; its result is a list of rows, whose columns follow, `?` if they may be null:

    @procedure("table! string, branch! string, to! string -> branch_updated string, ...")
    def fast_forward(call: Call, table: str, branch: str, to: str) -> list[tuple[str]]:
        \"\"\"Move a branch to where another one is, of which it is an ancestor.\"\"\"

A null stands for a parameter's default, as in Iceberg: null, or what follows as `= false`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icecomb.format.errors import ValidationError


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
_TYPES: Final = {
    kind.name: kind
    for kind in (
        _TEXT,
        _LONG,
        SqlType("boolean", "boolean", _scalar(bool)),
        SqlType("int", "integer", _scalar(int)),
        SqlType("timestamp", "timestamp", _scalar(int)),
        _array(_TEXT),
        _array(_LONG),
        SqlType("map<string,string>", _MAP, _strings),
    )
}
"""Types by name; a timestamp is microseconds since 1970 UTC."""


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
        run: The function, called with a `Call` and arguments by name.
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


def declared(
    name: str, description: str, signature: str, run: Callable[..., Sequence[Any]]
) -> Procedure:
    """Return the procedure of a declaration; see the module."""
    taken, _, given = signature.partition(" -> ")
    return Procedure(
        name,
        description,
        tuple(_parameter(one, required="! " in one) for one in taken.split(", ")),
        tuple(_parameter(one, required=not one.endswith("?")) for one in given.split(", ")),
        run,
    )


def procedure(signature: str) -> Callable[[Callable[..., Sequence[Any]]], Procedure]:
    """Declare a function as the procedure of its name and of the first line of its docstring."""

    def declare(function: Callable[..., Sequence[Any]]) -> Procedure:
        description = (inspect.getdoc(function) or "").partition("\n")[0]
        return declared(function.__name__, description, signature, function)

    return declare


def _parameter(text: str, *, required: bool) -> Parameter:
    written, _, default = text.partition(" = ")
    name, kind = written.split(" ")
    value = json.loads(default) if default else None
    return Parameter(name.rstrip("!"), _TYPES[kind.rstrip("?")], required, value)
