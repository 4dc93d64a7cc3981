"""Bottom-up evaluation of trees, without recursion, as filters may nest deeply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

_N = TypeVar("_N")
_A = TypeVar("_A")
_END: Final = object()


def folded(
    root: _N,
    parts: Callable[[_N], Iterable[_N]],
    answer: Callable[[_N, list[_A]], _A],
    add: Callable[[_N, list[_A], _A], bool] | None = None,
) -> _A:
    """Compute a result for a tree, from its leaves up.

    `add` adds the result of a child to those before it; it returns True if they decide the node, so
    that no more children are evaluated. By default all are.
    """
    waiting: list[tuple[_N, Iterator[_N], list[_A]]] = [(root, iter(parts(root)), [])]
    while True:
        node, inside, answers = waiting[-1]
        part = next(inside, _END)
        if part is not _END:
            waiting.append((part, iter(parts(part)), []))  # type: ignore[arg-type]
            continue
        waiting.pop()
        found = answer(node, answers)
        if not waiting:
            return found
        around, _, before = waiting[-1]
        if add is None:
            before.append(found)
        elif add(around, before, found):
            waiting[-1] = around, iter(()), before
