"""How long applying takes by what planning measured."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from icecomb.catalog import migrate
from icecomb.catalog.migrate.planning import survey
from icecomb.catalog.migrate.planning.pace import Pace, WarmUp


def test_the_first_call_of_a_process_and_waiting_for_others_do_not_count() -> None:
    lasting = iter([2.0, 2.0, 9.0, 1.0, 9.0, 9.0])
    now = 0.0

    def call() -> None:
        nonlocal now
        now += next(lasting)

    pace = Pace(warm := WarmUp(), lambda: now)
    assert pace.seconds(100, 4) == 0
    pace.timed(call)
    assert pace.seconds(100, 4) == 0
    for _ in range(5):
        pace.timed(call)
    assert pace.seconds(100, 4) == 2.0 * 100 / 4
    other = Pace(warm, iter(map(float, itertools.count())).__next__)
    other.timed(lambda: None)
    assert other.seconds(3, 1) == 3


def test_calls_of_other_tables_wait_for_the_first_one_untimed() -> None:
    begun, may_end = threading.Event(), threading.Event()
    now = 0.0
    paces = [Pace(warm := WarmUp(), lambda: now), Pace(warm, lambda: now)]

    def first() -> None:
        nonlocal now
        begun.set()
        assert may_end.wait(10)
        now += 30

    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(paces[0].timed, first)
        assert begun.wait(10)
        other = threads.submit(paces[1].timed, lambda: None)
        may_end.set()
        one.result()
        other.result()
    assert [pace.seconds(1, 1) for pace in paces] == [0, 0]


def test_a_small_table_takes_no_time_however_long_modules_load(
    make_hive_table: Any, monkeypatch: Any
) -> None:
    """The clock goes on by a minute while the first folder is listed, and the first footer read."""
    now = 0.0
    rows = pa.table({"id": pa.array([1], pa.int64())})
    table = make_hive_table({"id": "bigint"}, {"k": "int"}, {("1",): rows, ("2",): rows})
    for module, name in ((survey, "_FIRST_LISTING"), (survey, "_FIRST_FOOTER")):
        monkeypatch.setattr(module, name, WarmUp())
        monkeypatch.setattr(module, "Pace", lambda warm: Pace(warm, lambda: now))
    listed, read = survey.list_folder, survey.FooterReader.read
    left = {"listing": 60.0, "footer": 60.0}

    def list_folder(*arguments: Any) -> Any:
        nonlocal now
        now += left.pop("listing", 0.0)
        return listed(*arguments)

    def read_footer(*arguments: Any, **more: Any) -> Any:
        nonlocal now
        now += left.pop("footer", 0.0)
        return read(*arguments, **more)

    monkeypatch.setattr(survey, "list_folder", list_folder)
    monkeypatch.setattr(survey.FooterReader, "read", read_footer)
    plan = migrate.plan(table.catalog, table.name)
    assert not left
    assert plan.seconds is not None
    assert plan.seconds < 60
