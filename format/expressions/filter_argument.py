"""Row filter arguments in all the forms that callers may give."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, Union

from icecomb.format.argument import hint_of_pyiceberg
from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.expression import AlwaysTrue, BooleanExpression

if TYPE_CHECKING:
    import pyarrow.compute as pc

RowFilter: TypeAlias = Union[BooleanExpression, str, "pc.Expression"]
"""An expression, SQL text such as `"id > 5 and s = 'x'"`, or a filter made with pyarrow.

A comparison selects neither null nor NaN, except that `!=` and `not in` select NaN: as in PyIceberg
and pyarrow, unlike in Spark, where NaN is the greatest number. Use `isnan(d)` to select NaN.
"""


def as_expression(row_filter: RowFilter | None) -> BooleanExpression:
    """Convert a row filter to an expression; None selects all rows."""
    if row_filter is None:
        return AlwaysTrue()
    if isinstance(row_filter, BooleanExpression):
        return row_filter
    if isinstance(row_filter, str):
        from icecomb.format.expressions.sql.parser import parse

        return parse(row_filter)
    # only callers that have such an object need pyarrow, and they have imported it
    if type(row_filter).__module__ == "pyarrow._compute" and hasattr(row_filter, "isin"):
        from icecomb.format.expressions.forms.arrow_form import from_arrow

        return from_arrow(row_filter)
    raise ExpressionError(
        f"Not a row filter: {row_filter!r}",
        hint=hint_of_pyiceberg(row_filter, "the expression of the same name")
        or 'Give SQL text, or an expression like EqualTo("id", 1) or pc.field("id") == 1.',
    )
