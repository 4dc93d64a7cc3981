"""How big a Spark partition of a scan is: who decides, and what nonsense is refused."""

from __future__ import annotations

import pytest

from icecomb.format.errors import ConfigurationError
from icecomb.spark.planner.protocol.scans import SplitHints
from icecomb.spark.planner.scan.read_options import ReadOptions
from icecomb.spark.planner.scan.scan import split_size as of_options

MB = 1 << 20
BIG = 10**12
UNSET = SplitHints(parallelism=1, split_bytes=None, open_cost_bytes=None)


def split_size(properties, options, hints, total, **settings):
    named = {f"spark.sql.iceberg.read.{key.replace('_', '-')}": v for key, v in settings.items()}
    return of_options(properties, ReadOptions(options, named), hints, total)


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


def test_settings_of_iceberg_go_before_the_table_and_behind_options():
    hints = SplitHints(parallelism=4, split_bytes=500, open_cost_bytes=None)
    assert split_size({}, {}, hints, BIG, split_size="70").target == 70
    assert split_size({}, {"SPLIT-SIZE": "60"}, hints, BIG, split_size="70").target == 60


def test_a_small_scan_is_not_cut_for_the_cores_where_that_is_turned_off():
    hints = SplitHints(parallelism=4, split_bytes=None, open_cost_bytes=None)
    table, size = {"read.split.adaptive-size.enabled": "false"}, 100 * MB
    on, off = ({"adaptive-split-size.enabled": text} for text in ("true", "false"))
    assert split_size(table, {}, hints, size).target == 128 * MB
    assert split_size(table, {}, hints, size, **on).target == 25 * MB
    assert split_size({}, {}, hints, size, **off).target == 128 * MB
    wide = {"adaptive-split-size.parallelism": "10"}
    assert split_size({}, {}, hints, size, **wide).target == 10 * MB
    with pytest.raises(ConfigurationError, match=r"adaptive-split-size\.parallelism cannot be '0'"):
        split_size({}, {}, hints, size, **{"adaptive-split-size.parallelism": "0"})


@pytest.mark.parametrize("text", ["0", "-1", "128MB", ""])
def test_a_size_that_is_no_positive_number_is_refused_by_name(text):
    with pytest.raises(ConfigurationError, match=r"read\.split\.target-size"):
        split_size({"read.split.target-size": text}, {}, UNSET, 1)
