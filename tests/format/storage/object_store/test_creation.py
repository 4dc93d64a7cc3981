"""Objects whose creation is not answered: what is there is looked at byte by byte."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from icecomb.format.errors import (
    FileAlreadyExistsError,
    FileIOError,
    FileStateUnknownError,
    NoSuchFileError,
)
from icecomb.format.storage.object_store import creation
from icecomb.format.storage.object_store.client import (
    AnswerLostError,
    MarkedCompletion,
    StoreBusyError,
)


class Store:
    """Puts fail as told, one after the other; then the key is taken if there is an object."""

    def __init__(self, there: bytes | None, *faults: type[Exception]) -> None:
        self.there = there
        self.faults = list(faults)
        self.puts = 0

    def put(self, key: str, location: str, data: bytes, *, replace: bool) -> None:
        self.puts += 1
        if self.faults:
            raise self.faults.pop(0)(f"put {key}")
        if self.there is not None and not replace:
            raise FileAlreadyExistsError(location)
        self.there = data

    def status(self, key: str, location: str) -> Any:
        if self.there is None:
            raise NoSuchFileError(f"{key} {location}")
        return SimpleNamespace(size=len(self.there))

    def read(self, key: str, location: str) -> bytes:
        if self.there is None:
            raise NoSuchFileError(f"{key} {location}")
        return self.there


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(creation, "FIRST_S", 0.001)


def put(store: Any, attempts: int = 3) -> None:
    creation.put_once(store, "k", "s3://b/k", b"ours", attempts)


def test_an_object_that_an_unanswered_request_made_is_ones_own():
    store = Store(b"ours", AnswerLostError)
    put(store)
    assert store.puts == 2


@pytest.mark.parametrize("theirs", [b"them", b"others", b""])
def test_an_object_of_other_bytes_is_another_s_even_if_it_is_as_long(theirs):
    with pytest.raises(FileAlreadyExistsError):
        put(Store(theirs, AnswerLostError))


def test_an_object_that_was_there_before_the_first_answer_is_another_s_whatever_its_bytes():
    with pytest.raises(FileAlreadyExistsError):
        put(Store(b"ours"))
    with pytest.raises(FileAlreadyExistsError):
        put(Store(b"ours", StoreBusyError))


def test_an_object_that_is_not_there_after_the_last_request_may_still_come():
    put(Store(None, AnswerLostError, AnswerLostError))
    lost = Store(None, AnswerLostError, AnswerLostError, AnswerLostError)
    with pytest.raises(FileStateUnknownError, match="not known whether s3://b/k was created"):
        put(lost)


class Marked(MarkedCompletion):
    """One whose completion is refused, though it may have been made by the same request."""

    def __init__(self, error: Exception, *, made: bool) -> None:
        super().__init__()
        self.error = error
        self.made = made

    def complete(self) -> None:
        raise self.error

    def found_mark(self) -> str | None:
        return self.mark if self.made else None


@pytest.mark.parametrize("error", [FileIOError, FileAlreadyExistsError, NoSuchFileError])
def test_an_upload_whose_completion_was_sent_twice_is_done_whatever_the_second_answer(error):
    creation.complete_once(Marked(error("400"), made=True), "s3://b/k", 3)
    with pytest.raises(error):
        creation.complete_once(Marked(error("400"), made=False), "s3://b/k", 3)
