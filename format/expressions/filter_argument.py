"""Row filters in the forms that callers may give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, Union

from icecomb.format.argument import hint_of_pyiceberg
from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.expression import AlwaysTrue, BooleanExpression

if TYPE_CHECKING:
    import pyarrow.compute as pc

RowFilter: TypeAlias = Union[BooleanExpression, str, "pc.Expression"]
"""An expression, SQL text such as `"id > 5 and s = 'x'"`, or a filter made with pyarrow.

A comparison selects neither null nor NaN, but `!=` and `not in` select NaN: as in PyIceberg and
pyarrow, unlike in Spark, for which NaN is the greatest number. Ask `isnan(d)` for it.
"""


def as_expression(row_filter: RowFilter | None) -> BooleanExpression:
    """The expression that a caller means; None selects all rows.

    Raises:
        ExpressionError: It is no filter, or one that cannot be taken over exactly.
    """
    if row_filter is None:
        return AlwaysTrue()
    if isinstance(row_filter, BooleanExpression):
        return row_filter
    if isinstance(row_filter, str):
        from icecomb.format.expressions.parser import parse

        return parse(row_filter)
    # whoever has such an object has imported pyarrow; others should not have to
    if type(row_filter).__module__ == "pyarrow._compute" and hasattr(row_filter, "isin"):
        from icecomb.format.expressions.arrow_form import from_arrow

        return from_arrow(row_filter)
    raise ExpressionError(
        f"Not a row filter: {row_filter!r}",
        hint=hint_of_pyiceberg(row_filter, "the expression of the same name")
        or 'Give SQL text, or an expression like EqualTo("id", 1) or pc.field("id") == 1.',
    )
