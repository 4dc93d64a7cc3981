from __future__ import annotations

import fastavro
import pytest

from icecomb.format.rows.avro.reader import AvroReader
from icecomb.format.storage.file_io import FileIO


@pytest.mark.parametrize("batch_size", [1, 4, 7, 100])
def test_rows_keep_their_places_over_all_blocks_of_a_file(tmp_path, batch_size):
    """Position deletes name rows by these places."""
    path = tmp_path / "rows.avro"
    field = {"name": "id", "type": "long", "field-id": 1}
    schema = {"type": "record", "name": "r", "fields": [field]}
    with path.open("wb") as file:
        # a block of some five rows each
        fastavro.writer(file, schema, [{"id": n} for n in range(50)], sync_interval=10)
    reader = AvroReader(FileIO(), str(path))
    found = []
    for begin, batch in reader.batches([0], [0], batch_size):
        assert batch.num_rows <= batch_size
        found += enumerate(batch.column(0).to_pylist(), begin)
    reader.close()
    assert found == [(n, n) for n in range(50)]
