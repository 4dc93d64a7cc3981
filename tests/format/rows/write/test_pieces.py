"""Data cut and put together to batches of a size worth a call."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icecomb.format.rows.write import data_writer
from icecomb.format.rows.write.data_writer import in_pieces

TEXTS = ["x" * n for n in (10, 3000, 900, 20, 700, 0, 800, 1, 2, 3)]


@pytest.fixture
def short(monkeypatch):
    """Pieces of at most 1000 bytes, or 4 rows."""
    monkeypatch.setattr(data_writer, "PIECE_BYTES", 1000)
    monkeypatch.setattr(data_writer, "PIECE_ROWS", 4)


FORMS = {
    "texts": pa.array(TEXTS),
    "large texts": pa.array(TEXTS, pa.large_string()),
    "views": pa.array(TEXTS, pa.string_view()),
    "dictionary": pa.array(TEXTS * 2).dictionary_encode().slice(0, len(TEXTS)),
    "run ends": pa.RunEndEncodedArray.from_arrays(pa.array(range(1, 11), pa.int32()), TEXTS),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length", [1, 3, 10])
def test_pieces_are_bounded_in_rows_and_in_bytes(short, form, length):
    batch = pa.record_batch([FORMS[form]], ["s"])
    batches = [batch.slice(start, length) for start in range(0, len(TEXTS), length)]
    for data in (pa.Table.from_batches(batches), iter(batches)):
        pieces = list(in_pieces(data))
        assert [text for piece in pieces for text in piece.column(0).to_pylist()] == TEXTS
        assert all(p.nbytes <= 1000 or p.num_rows == 1 for p in pieces)
        assert max(p.num_rows for p in pieces) <= 7
        assert len(pieces) < len(TEXTS)


def test_batches_of_one_schema_are_joined_and_of_others_kept_apart():
    a, b = pa.record_batch([[1]], ["a"]), pa.record_batch([["x"]], ["b"])
    pieces = list(in_pieces([a, a, b, b.slice(1), b, a]))
    assert [(p.schema.names, p.num_rows) for p in pieces] == [(["a"], 2), (["b"], 2), (["a"], 1)]
