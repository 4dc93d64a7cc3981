from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.rows.values.statistics import ColumnStatistics
from icecomb.format.spec.types import DecimalType


@pytest.mark.parametrize("precision", [9, 18, 38])
def test_a_footer_tells_of_decimals_only_in_the_scale_that_they_were_written_in(precision):
    """12.34 is 1234 in the file: as a decimal of three digits behind the point that would be 1.234."""
    written = pa.BufferOutputStream()
    values = pa.array([Decimal("12.34"), Decimal("-5.00")], pa.decimal128(precision, 2))
    pq.write_table(pa.table({"x": values}), written)
    footer = pq.read_metadata(pa.BufferReader(written.getvalue()))

    def bounds(scale: int) -> tuple[object, object]:
        found = ColumnStatistics(footer, 0, DecimalType(precision, scale)).chunk(0)
        assert found.null_count == 0
        return found.lower, found.upper

    assert bounds(2) == (Decimal("-5.00"), Decimal("12.34"))
    assert bounds(1) == bounds(3) == (None, None)
