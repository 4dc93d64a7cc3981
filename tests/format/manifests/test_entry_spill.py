"""Encoded entries that lie in a file come back as they were, in any order."""

from __future__ import annotations

import math
import random
import tempfile

import numpy as np
import pytest

from icecomb.format.errors import FileIOError
from icecomb.format.manifests import entry_spill
from icecomb.format.manifests.entry_spill import EntrySpill
from icecomb.format.manifests.manifest import ManifestEntryStatus
from icecomb.format.manifests.writer import EncodedEntry


@pytest.mark.parametrize("in_memory", [0, 1, 100, 1 << 20])
def test_entries_come_back_in_any_order(monkeypatch, in_memory):
    monkeypatch.setattr(entry_spill, "IN_MEMORY", in_memory)
    draw = random.Random(7)
    values = [None, "a", "b", 0.0, -0.0, math.nan, 3]
    entries = [
        EncodedEntry(
            draw.randbytes(draw.randrange(40)),
            draw.choice(list(ManifestEntryStatus)),
            draw.randrange(1 << 40),
            draw.choice([None, 0, 7]),
            (draw.choice(values), draw.choice(values)),
        )
        for _ in range(500)
    ]
    with EntrySpill() as spill:
        spill.add(entries[:200])
        spill.add(entries[200:])
        assert len(spill) == 500
        assert len(spill.partitions) <= len(values) ** 2
        order = np.array(draw.sample(range(500), 500), np.int64)
        found = list(spill.entries(order))
        again = list(spill.entries(order[:10]))
    # NaN and the sign of zero as text
    assert list(map(repr, found)) == [repr(entries[at]) for at in order]
    assert list(map(repr, again)) == list(map(repr, found[:10]))


def test_a_full_disk_is_an_error_that_says_where(monkeypatch):
    class Full:
        def write(self, _):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", lambda _: Full())
    with EntrySpill() as spill, pytest.raises(FileIOError, match="No space left"):
        spill.add([EncodedEntry(b"x", ManifestEntryStatus.EXISTING, 1, 1, ())])
