"""A property is read by one rule, and a wrong value refused in one wording."""

from __future__ import annotations

from dataclasses import replace
from getpass import getuser

import pytest

from icecomb.catalog.commit.commit import RetrySettings
from icecomb.catalog.hive.lock import LockSettings
from icecomb.catalog.hive.settlement import pauses
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.format.errors import ConfigurationError
from icecomb.format.property.property import (
    choice,
    flag,
    nearest,
    number,
    seconds,
    similar,
    text,
)
from icecomb.format.secret import HIDDEN

FLAG = flag("k", "", default=True)
NUMBER = number("k", 7, "", least=0)
DURATION = seconds("k", 60.0, "")
MILLISECONDS = seconds("k", 60.0, "", unit="ms")


@pytest.mark.parametrize(
    ("said", "value"),
    [("300s", 300), ("300", 300), ("500ms", 0.5), ("5min", 300), ("1h", 3600), (" 2 SEC ", 2)],
)
def test_durations_are_read_as_hive_writes_them(said, value):
    assert DURATION.of({"k": said}) == value


def test_a_duration_may_count_milliseconds_where_no_unit_is_given():
    assert (MILLISECONDS.of({"k": "1500"}), MILLISECONDS.of({"k": "2s"})) == (1.5, 2)


@pytest.mark.parametrize(
    ("known", "said", "accepted"),
    [
        (DURATION, "soon", "a duration such as 300s or 500ms, or a number of seconds"),
        (DURATION, "5 parsecs", "a duration such as 300s or 500ms, or a number of seconds"),
        (DURATION, "-5s", "a duration such as 300s or 500ms, or a number of seconds"),
        (DURATION, "nan", "a duration such as 300s or 500ms, or a number of seconds"),
        (MILLISECONDS, "", "a duration such as 300s or 500ms, or a number of milliseconds"),
        (NUMBER, "x", "a whole number, 0 or more"),
        (NUMBER, "-1", "a whole number, 0 or more"),
        (FLAG, "yes", "true or false"),
        (choice("k", ("a", "b"), ""), "c", "a or b"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_in_one_wording(known, said, accepted):
    with pytest.raises(ConfigurationError) as caught:
        known.of({"k": said})
    assert caught.value.hint == f"It may be {accepted}."
    assert caught.value.message == f"Property k cannot be '{said}'"


def test_an_argument_goes_before_the_property_before_the_default_of_the_place_before_its_own():
    assert NUMBER.of({"k": "1"}, 2) == 2
    assert NUMBER.of({"k": "1"}, default=3) == 1
    assert NUMBER.of({}, default=3) == 3
    assert NUMBER.of({}) == 7
    assert FLAG.of({}, default=False) is False


def test_another_name_counts_where_its_own_is_not_set_and_is_named_when_it_is_wrong():
    known = replace(NUMBER, also=("older", "oldest"))
    assert known.of({"k": "1", "older": "2"}) == 1
    assert known.of({"older": "2", "oldest": "3"}) == 2
    assert known.of({"oldest": "3"}) == 3
    with pytest.raises(ConfigurationError, match="Property older cannot be 'x'"):
        known.of({"older": "x", "oldest": "3"})


def test_a_secret_is_not_shown_by_the_error_that_refuses_it():
    for key in ("hdfs.delegation-token", "client.password", "s3.access-key-id"):
        for known in (
            number(key, 1, ""),
            flag(key, "", default=True),
            text(key, "", "other", lambda _: False),
        ):
            with pytest.raises(ConfigurationError) as caught:
                known.of({key: "hunter2"})
            assert HIDDEN in caught.value.message
            assert "hunter2" not in f"{caught.value} {caught.value.hint} {caught.value!r}"
    with pytest.raises(ConfigurationError, match="'thrift://h:1'"):
        NUMBER.of({"k": "thrift://ann:hunter2@h:1"})


def test_a_misspelt_name_is_found_in_any_case():
    assert nearest("hive.metastore.use.ssl", ["hive.metastore.use.SSL"]) == "hive.metastore.use.SSL"
    assert similar("PRICE", ["Price", "prize", "id"]) == ["Price", "prize"]
    assert nearest("something.else", ["hive.metastore.use.SSL"]) is None


def test_defaults_are_those_of_hive_and_iceberg():
    # TableProperties, MetastoreLock and HiveConf of their sources.
    assert RetrySettings.of({}, {}, locked=True) == RetrySettings(4, 0.1, 60, 1800)
    assert list(pauses({})) == [0, 1, 2, 4]
    assert LockSettings.of({}) == LockSettings(180, 0.05, 5, 180, 0.05, 5, 240, getuser())
    found = ConnectionSettings.of({"ugi": "ann"})
    assert found == ConnectionSettings(user="ann")
    # Ours: a retry without locks is cheap.
    assert RetrySettings.of({}, {}, locked=False) == RetrySettings(100, 0.1, 1, 1800)


def test_what_a_table_asks_of_its_writers_is_bounded_by_the_catalog():
    most = str((1 << 63) - 1)
    names = ("num-retries", "min-wait-ms", "max-wait-ms", "total-timeout-ms")
    table = {f"commit.{kind}.{name}": most for kind in ("retry", "status-check") for name in names}
    assert RetrySettings.of(table, {}, locked=True) == RetrySettings(int(most), 60, 60, 1800)
    catalog = {"commit.retry.max-wait-ms": "90000", "commit.retry.total-timeout-ms": "7200000"}
    settings = RetrySettings.of(table, catalog, locked=True)
    assert settings == RetrySettings(int(most), 90, 90, 7200)
    assert settings.pause(1 << 20) <= 90
    assert sum(pauses(table)) <= 1800
    assert len(list(pauses({**table, "commit.status-check.min-wait-ms": "0"}))) == 1001
