"""Conversion of pyarrow filters (`pc.field("a") > 3`) to expressions.

pyarrow does not expose the content of an expression, but pickles one as an Arrow file: the schema's
metadata is the expression in prefix notation, the columns hold the constants with their types.
That form is read here; the text form of an expression would be ambiguous.

A converted filter selects the same rows as in pyarrow, whose functions treat nulls and NaN
differently from SQL: `~(a > 3)` selects NaN, `~a.isin([1])` selects nulls. Constants are converted
to the types of their columns, as in every filter of a table.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.expression import (
    AlwaysFalse,
    AlwaysTrue,
    BooleanExpression,
    EqualTo,
    In,
    IsNaN,
    IsNull,
    NotIn,
    NotNaN,
    NotNull,
    PredicateOperation,
    StartsWith,
    conjunction,
    disjunction,
    folded,
    literal_predicate,
)
from icecomb.format.expressions.literal import scalar_value

_COMPARISONS: Final = {
    "equal": PredicateOperation.EQ,
    "not_equal": PredicateOperation.NOT_EQ,
    "less": PredicateOperation.LT,
    "less_equal": PredicateOperation.LT_EQ,
    "greater": PredicateOperation.GT,
    "greater_equal": PredicateOperation.GT_EQ,
}
_MIRRORED: Final = {
    PredicateOperation.LT: PredicateOperation.GT,
    PredicateOperation.LT_EQ: PredicateOperation.GT_EQ,
    PredicateOperation.GT: PredicateOperation.LT,
    PredicateOperation.GT_EQ: PredicateOperation.LT_EQ,
}
_HINT: Final = (
    "Comparisons with a constant, isin, is_null, is_valid, pc.is_nan and pc.starts_with of a "
    "column can be used, joined by & | ~."
)
_NULL_MATCHES, _NULL_IS_SKIPPED = 0, 1
_JOINS: Final = ("and_kleene", "or_kleene")
_INVERT: Final = "invert"
_SHOWN: Final = 300
"""The most characters of a filter that messages quote."""


def from_arrow(expression: pc.Expression) -> BooleanExpression:
    """Convert a pyarrow filter to an expression that is true for the same rows."""
    return _Translation(expression).selected()


@dataclass(frozen=True, slots=True)
class _Column:
    name: str


@dataclass(frozen=True, slots=True)
class _Constant:
    scalar: pa.Scalar


@dataclass(frozen=True, slots=True)
class _Call:
    function: str
    arguments: tuple[_Node, ...]
    options: Mapping[str, Any]


_Node = _Column | _Constant | _Call
_Asked = tuple[_Node, bool]
"""A part, and True for the rows where it is true, False for those where it is false."""


class _Translation:
    """A filter being converted: for each part, the rows where it is true, or where it is false."""

    def __init__(self, expression: pc.Expression) -> None:
        self._whole = expression
        self._functions: dict[str, Callable[[_Call, bool], BooleanExpression]] = {
            "is_null": self._is_null,
            "is_valid": lambda call, wanted: _null(self._column(call), not wanted),
            "true_unless_null": self._known,
            "is_nan": self._is_nan,
            "is_in": self._is_in,
            "starts_with": self._starts_with,
            **dict.fromkeys(_COMPARISONS, self._compare),
        }

    def selected(self) -> BooleanExpression:
        return folded((self._parsed(), True), _parts, self._rows)

    @property
    def _text(self) -> str:
        text = str(self._whole)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."

    def _parsed(self) -> _Node:
        try:
            stored = self._whole.__reduce__()[1][0]
            batch = pa.ipc.open_file(stored).get_batch(0)
        except pa.ArrowException as error:
            raise ExpressionError(
                f"Not a filter that can be converted: {self._text}: {error}",
                hint="Name columns: pc.field('a'), not pc.field(0).",
            ) from error
        try:
            return _tree(_metadata(batch.schema), batch)
        except (StopIteration, KeyError, IndexError, ValueError) as error:
            raise ExpressionError(
                f"This version of pyarrow stores filters in an unknown way: {self._text}",
                hint="Write the filter as SQL text or with icecomb's expressions instead.",
            ) from error

    def _rows(self, asked: _Asked, parts: list[BooleanExpression]) -> BooleanExpression:
        """Return the expression of the rows where a part is true, or where it is false."""
        node, wanted = asked
        if isinstance(node, _Column):
            return EqualTo(node.name, wanted)
        if isinstance(node, _Constant):
            if not pa.types.is_boolean(node.scalar.type) and node.scalar.is_valid:
                self._refuse(node)
            return AlwaysTrue() if node.scalar.as_py() is wanted else AlwaysFalse()
        if node.function == _INVERT:
            return parts[0]
        if node.function in _JOINS:
            is_and = wanted is (node.function == "and_kleene")
            return conjunction(parts) if is_and else disjunction(parts)
        function = self._functions.get(node.function)
        if function is None:
            self._refuse(node)
        return function(node, wanted)

    def _compare(self, call: _Call, wanted: bool) -> BooleanExpression:  # noqa: FBT001
        operation = _COMPARISONS[call.function]
        left, right = call.arguments
        if isinstance(left, _Constant):
            left, right = right, left
            operation = _MIRRORED.get(operation, operation)
        if not isinstance(left, _Column) or not isinstance(right, _Constant):
            self._refuse(call)
        if not right.scalar.is_valid:
            return AlwaysFalse()
        value = self._value(right)
        if isinstance(value, float) and math.isnan(value):
            # no comparison with NaN is true, except that all numbers differ from it
            always = (operation is PredicateOperation.NOT_EQ) is wanted
            return NotNull(left.name) if always else AlwaysFalse()
        if wanted:
            return literal_predicate(operation, left.name, value)
        negated = literal_predicate(operation.negated, left.name, value)
        if operation in _MIRRORED:
            return disjunction((negated, IsNaN(left.name)))
        return negated

    def _is_null(self, call: _Call, wanted: bool) -> BooleanExpression:  # noqa: FBT001
        name = self._column(call)
        if not call.options.get("nan_is_null"):
            return _null(name, wanted)
        if wanted:
            return disjunction((IsNull(name), IsNaN(name)))
        return conjunction((NotNull(name), NotNaN(name)))

    def _known(self, call: _Call, wanted: bool) -> BooleanExpression:  # noqa: FBT001
        return NotNull(self._column(call)) if wanted else AlwaysFalse()

    def _is_nan(self, call: _Call, wanted: bool) -> BooleanExpression:  # noqa: FBT001
        name = self._column(call)
        return IsNaN(name) if wanted else conjunction((NotNull(name), NotNaN(name)))

    def _starts_with(self, call: _Call, wanted: bool) -> BooleanExpression:  # noqa: FBT001
        name, prefix = self._column(call), call.options.get("pattern")
        if call.options.get("ignore_case") is not False or not isinstance(prefix, str):
            self._refuse(call)
        return StartsWith(name, prefix) if wanted else ~StartsWith(name, prefix)

    def _is_in(self, call: _Call, wanted: bool) -> BooleanExpression:  # noqa: FBT001
        name, found = self._column(call), call.options["value_set"]
        nulls = call.options["null_matching_behavior"]
        if nulls not in (_NULL_MATCHES, _NULL_IS_SKIPPED):
            self._refuse(call)
        values = [self._value(_Constant(item)) for item in found if item.is_valid]
        numbers = [value for value in values if value == value]  # noqa: PLR0124 - all but NaN
        null = found.null_count > 0 and nulls == _NULL_MATCHES
        nan = len(numbers) < len(values)
        if wanted:
            listed = [IsNull(name)] * null + [IsNaN(name)] * nan
            return disjunction((In(name, numbers), *listed))
        others = conjunction((NotIn(name, numbers), *([NotNaN(name)] * nan)))
        # NotIn of no values is true for all rows, so nulls must be excluded
        there = conjunction((others, NotNull(name)))
        return there if null else disjunction((there, IsNull(name)))

    def _column(self, call: _Call) -> str:
        column = call.arguments[0]
        if not isinstance(column, _Column):
            self._refuse(call)
        return column.name

    def _value(self, constant: _Constant) -> Any:
        try:
            return scalar_value(constant.scalar)
        except (pa.ArrowException, ValueError, OverflowError) as error:
            raise ExpressionError(
                f"A constant that no column can hold: {_shown(constant.scalar)} in {self._text}: "
                f"{error}",
                hint="Compare the column with a constant of its own type.",
            ) from error

    def _refuse(self, node: _Node) -> NoReturn:
        raise ExpressionError(
            f"Not a filter that can be converted exactly: {_described(node)} in {self._text}",
            hint=_HINT,
        )


def _null(name: str, wanted: bool) -> BooleanExpression:  # noqa: FBT001
    return IsNull(name) if wanted else NotNull(name)


def _tree(metadata: Iterable[tuple[str, str]], batch: pa.RecordBatch) -> _Node:
    """Return the expression of a prefix notation; without recursion, as long chains nest deeply."""
    arguments: list[_Node] = []
    outer: list[tuple[str, list[_Node]]] = []
    options: Mapping[str, Any] = {}
    tokens = iter(metadata)
    for kind, value in tokens:
        if kind == "call":
            outer.append((value, arguments))
            arguments = []
        elif kind == "end":
            function, around = outer.pop()
            around.append(_Call(function, tuple(arguments), options))
            arguments, options = around, {}
        elif kind == "options":
            options = _options(batch.column(int(value))[0])
        elif kind == "literal":
            arguments.append(_Constant(batch.column(int(value))[0]))
        elif kind == "field_ref":
            arguments.append(_Column(value))
        elif kind == "nested_field_ref":
            names = [next(tokens) for _ in range(int(value))]
            if any(part != "field_ref" for part, _ in names):
                raise ValueError(names)
            arguments.append(_Column(".".join(name for _, name in names)))
        else:
            raise ValueError(kind)
    (root,) = arguments
    return root


def _options(scalar: pa.StructScalar) -> dict[str, Any]:
    """Return the options of a function; a set of values remains an Arrow array."""
    return {
        name: value.values if isinstance(value, pa.ListScalar) else value.as_py()
        for name, value in scalar.items()
    }


def _parts(asked: _Asked) -> list[_Asked]:
    node, wanted = asked
    if not isinstance(node, _Call) or node.function not in (_INVERT, *_JOINS):
        return []
    return [(argument, wanted is (node.function != _INVERT)) for argument in node.arguments]


def _described(node: _Node, depth: int = 3) -> str:
    if isinstance(node, _Column):
        return node.name
    if isinstance(node, _Constant):
        return _shown(node.scalar)
    inside = ", ".join(_described(one, depth - 1) for one in node.arguments) if depth else "..."
    return f"{node.function}({inside})"


def _shown(scalar: pa.Scalar) -> str:
    """Return the text of a constant, even of a time that Python cannot represent."""
    try:
        return str(scalar)
    except (pa.ArrowException, ValueError, OverflowError):
        return f"a {scalar.type}"


def _metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Return keys and values of metadata in order, with repeated ones, which a dict loses."""
    capsule = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    # struct ArrowSchema { const char* format; const char* name; const char* metadata; ...
    fields = ctypes.cast(pointer(capsule, b"arrow_schema"), ctypes.POINTER(ctypes.c_void_p))
    address = fields[2]
    found: list[tuple[str, str]] = []
    if address:
        (count,), address = struct.unpack("=i", ctypes.string_at(address, 4)), address + 4
        for _ in range(count):
            pair = []
            for _ in range(2):
                (length,) = struct.unpack("=i", ctypes.string_at(address, 4))
                pair.append(ctypes.string_at(address + 4, length).decode())
                address += 4 + length
            found.append((pair[0], pair[1]))
    return iter(found)
