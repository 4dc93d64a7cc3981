"""Offsets in checkpoints."""

from __future__ import annotations

import pytest

from icecomb.format.errors import ValidationError
from icecomb.spark.planner.streams import StreamOffset


def test_an_offset_is_read_back() -> None:
    offset = StreamOffset(5, 7, scan_all_files=True)
    assert StreamOffset.parse(offset.text()) == offset


@pytest.mark.parametrize(
    "members", ['"snapshot_id":"5","position":7', '"snapshot_id":5,"position":true']
)
def test_an_offset_with_members_of_another_type_is_refused(members: str) -> None:
    with pytest.raises(ValidationError):
        StreamOffset.parse(f'{{"version":1,{members},"scan_all_files":false}}')
