"""Which rows of a data file are deleted, for a changelog."""

from __future__ import annotations

import pytest

from icecomb.format.errors import UnsupportedError
from icecomb.format.manifests.manifest import DataFile
from icecomb.spark.planner.changes.files import stated_rows


def test_a_file_of_which_nobody_knows_how_many_rows_it_has_is_refused_by_name():
    file = DataFile(file_path="/lake/old.avro", record_count=-1, file_size_in_bytes=10)
    with pytest.raises(UnsupportedError, match=r"old\.avro"):
        stated_rows(file)
