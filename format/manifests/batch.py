"""Batches of small files to decode together: most of the cost of one is not its records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

BATCH_BYTES: Final = 256 << 10
"""Maximum compressed size of a batch; a larger file is a batch of its own."""
_MOST_FILES: Final = 64
"""Maximum number of files in a batch; more gain nothing."""


def batches(files: Iterable[T], length: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield files in order, in batches that grow from one file on, for a fast first result."""
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
            size = min(2 * size, _MOST_FILES)
    if batch:
        yield batch
