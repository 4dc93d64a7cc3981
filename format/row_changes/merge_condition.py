"""Conditions by which rows of a source match rows of a table: `t.id = s.id AND t.day = s.day`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from icecomb.format.argument import checked_members
from icecomb.format.errors import ExpressionError
from icecomb.format.expressions.sql.sql_token import Token, TokenKind, tokens

_NAMES = (TokenKind.WORD, TokenKind.NAME)


@dataclass(frozen=True, slots=True)
class MergeCondition:
    """Columns that must be equal, and further conditions, as SQL text, that must be true."""

    keys: tuple[tuple[str, str], ...]
    rest: str | None = None


def merge_condition(
    on: str | Sequence[str], target_alias: str = "t", source_alias: str = "s"
) -> MergeCondition:
    """Parse the condition of a merge.

    Args:
        on: Columns that both sides have, or SQL text: conditions joined by AND, of which at
            least one says that a column of the table equals one of the source.
    """
    if not isinstance(on, str):
        names = dict.fromkeys(checked_members("columns of a merge", on, str))
        keys = tuple((name, name) for name in names)
        if not keys:
            raise ExpressionError("A merge needs columns to find rows by", hint="Give on=['id'].")
        return MergeCondition(keys)
    found: list[tuple[str, str]] = []
    rest: list[str] = []
    for part in _parts(list(tokens(on))[:-1]):
        pair = _equality(part, target_alias, source_alias)
        if pair is None:
            rest.append(on[part[0].start : part[-1].end] if part else "")
        else:
            found.append(pair)
    if not found or "" in rest:
        raise ExpressionError(
            f"Cannot find rows by {on!r}: it does not say that one column equals another",
            hint=f"Begin with an equality: {target_alias}.id = {source_alias}.id AND ...",
            predicate=on,
        )
    return MergeCondition(
        tuple(dict.fromkeys(found)), " AND ".join(f"({text})" for text in rest) or None
    )


def _parts(given: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the parts joined by AND, outside of brackets, `BETWEEN ... AND` and `CASE ... END`.

    If there is an OR, the whole text is one part.
    """
    depth = ranges = 0
    part: list[Token] = []
    parts = [part]
    for token in given:
        opens = token.is_sign("(", "[") or token.is_word("CASE")
        closes = token.is_sign(")", "]") or token.is_word("END")
        depth += opens - closes
        if depth == 0 and token.is_word("OR"):
            yield list(given)
            return
        if depth == 0 and token.is_word("BETWEEN"):
            ranges += 1
        if depth == 0 and token.is_word("AND"):
            if not ranges:
                part = []
                parts.append(part)
                continue
            ranges -= 1
        part.append(token)
    yield from parts


def _equality(
    part: Sequence[Token], target_alias: str, source_alias: str
) -> tuple[str, str] | None:
    """Return the columns of the table and of the source that a part says are equal."""
    if len(part) != 7 or not part[3].is_sign("=", "=="):
        return None
    left, right = _column(part[:3]), _column(part[4:])
    if left is None or right is None:
        return None
    sides = {left[0]: left[1], right[0]: right[1]}
    if sides.keys() != {target_alias, source_alias}:
        return None
    return sides[target_alias], sides[source_alias]


def _column(part: Sequence[Token]) -> tuple[str, str] | None:
    side, dot, name = part
    if side.kind not in _NAMES or not dot.is_sign(".") or name.kind not in _NAMES:
        return None
    return side.value, name.value
