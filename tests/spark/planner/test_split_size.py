"""How big a Spark partition of a scan is: who decides, and what nonsense is refused."""

from __future__ import annotations

import pytest

from icecomb.format.errors import ConfigurationError
from icecomb.spark.planner.protocol import SplitHints
from icecomb.spark.planner.split_size import split_size

MB = 1 << 20
BIG = 10**12
UNSET = SplitHints(parallelism=1, split_bytes=None, open_cost_bytes=None)


def test_a_read_option_beats_the_session_which_beats_the_table_which_beats_the_default():
    table = {"read.split.target-size": "1000"}
    session = SplitHints(parallelism=2, split_bytes=500, open_cost_bytes=7)
    unset = SplitHints(parallelism=1, split_bytes=None, open_cost_bytes=None)
    assert split_size(table, {"split-size": "70"}, session, BIG).target == 70
    assert split_size(table, {}, session, BIG).target == 500
    assert split_size(table, {}, unset, BIG).target == 1000
    costs = {"read.split.open-file-cost": "5"}
    assert split_size(costs, {"file-open-cost": "6"}, session, BIG).open_cost == 6
    assert split_size(costs, {}, session, BIG).open_cost == 7
    assert split_size(costs, {}, unset, BIG).open_cost == 5
    assert split_size({}, {}, unset, BIG).target == 128 * MB


def test_open_cost_and_lookback_come_from_the_query_or_the_table():
    table = {"read.split.open-file-cost": "5", "read.split.planning-lookback": "3"}
    assert (
        split_size(table, {}, UNSET, BIG).open_cost,
        split_size(table, {}, UNSET, BIG).lookback,
    ) == (
        5,
        3,
    )
    options = {"file-open-cost": "6", "lookback": "4"}
    found = split_size(table, options, UNSET, BIG)
    assert (found.open_cost, found.lookback) == (6, 4)


def test_a_scan_smaller_than_the_cluster_gives_every_core_a_part():
    hints = SplitHints(parallelism=4, split_bytes=None, open_cost_bytes=None)
    assert split_size({}, {}, hints, 100 * MB).target == 25 * MB
    assert split_size({}, {}, hints, 4 * MB).target == 4 * MB


@pytest.mark.parametrize("text", ["0", "-1", "128MB", ""])
def test_a_size_that_is_no_positive_number_is_refused_by_name(text):
    with pytest.raises(ConfigurationError, match=r"read\.split\.target-size"):
        split_size({"read.split.target-size": text}, {}, UNSET, 1)
