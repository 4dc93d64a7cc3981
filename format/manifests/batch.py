"""Small files that are decoded together: most of what one costs is not its records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

BATCH_BYTES: Final = 256 << 10
"""Compressed. A file of this length gains nothing by others, and is a batch of its own."""
_MOST_FILES: Final = 64
"""More of them gain nothing."""


def batches(
    files: Iterable[T], length: Callable[[T], int], *, alone: bool = False
) -> Iterator[list[T]]:
    """Files in their order, in batches: of one at first, so that who needs no more has it at once.

    Args:
        files: Taken one batch ahead of what is needed of it.
        length: How many bytes a file has.
        alone: Whether each is a batch of its own.
    """
    batch: list[T] = []
    size, held = 1, 0
    for file in files:
        added = length(file)
        if batch and held + added > BATCH_BYTES:
            yield batch
            batch, held = [], 0
        batch.append(file)
        held += added
        if len(batch) >= size:
            yield batch
            batch, held = [], 0
            size = 1 if alone else min(2 * size, _MOST_FILES)
    if batch:
        yield batch
