"""What sessions leave of work that nobody will commit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from icecomb.format.errors import FileIOError
from icecomb.spark.planner.session.session_rewrites import SessionEngine
from icecomb.spark.planner.session.session_work import PendingWorks


def test_files_of_a_session_that_fails_after_its_write_are_deleted():
    deleted: list[str] = []
    works = PendingWorks()
    job: Any = SimpleNamespace(
        identifier=("db", "t"),
        metadata=SimpleNamespace(format_version=2),
        io=SimpleNamespace(delete=deleted.extend),
        group=SimpleNamespace(tasks=(), split_size=1),
        file_bytes=1,
    )

    class Failing:
        def ask(self, work):
            rewrite: Any = works.find(work.id)
            rewrite.take([SimpleNamespace(file_path="a")])
            rewrite.end("its cache could not be refreshed")

    conversation: Any = Failing()
    with pytest.raises(FileIOError, match="its cache could not be refreshed"):
        SessionEngine(works, "lake", conversation).rewrite(job)
    assert deleted == ["a"]
