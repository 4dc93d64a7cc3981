"""Something done in a process that is killed before or after one of its changes of the storage.

The child is a fork, so it begins where the test is, and costs no start. It kills itself by SIGKILL,
in whatever thread makes the change: nothing of it runs any more, no `finally` and no clean-up.
"""

from __future__ import annotations

import os
import re
import signal
import traceback
from collections.abc import Callable
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from icecomb.format.storage import local
from icecomb.format.storage.hdfs.web_hdfs import WebHdfs

CHANGES = ("link", "unlink", "replace", "mkdir", "rmdir")
"""All calls by which local storage makes names appear and disappear."""
HDFS_CHANGES = ("upload", "rename", "publish", "delete", "make_folder")
"""All calls that change what is on HDFS."""
_DRAWN = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}|\d{10,}")


def some_steps(*names: str, every: int = 6, keep: int = 99, shared: bool = False) -> list[Any]:
    """Return parameters: what is done, and at which of its fatal steps it is killed.

    In `full` at all; in the gate at every n-th, counted from the end, where the change becomes
    visible, and from another one each time, so that each kind of step has its turn.

    Args:
        names: What is done; without names there are only the steps.
        every: At every how many-th step it is killed in the gate.
        keep: With how many of them, the first ones, this is done in the gate.
        shared: Whether the steps of all of them are the same, and each is one's in `full`.
    """
    found = []
    for at, name in enumerate(names or (None,)):
        at_all = slice(at, None, len(names)) if shared else slice(None)
        for which, steps in (("some", slice(-1 - at % 4, None, -every)), ("all", at_all)):
            marks = [pytest.mark.full("killed at every step")]
            marks = [] if which == "some" and at < keep else marks
            values, label = (
                ((steps,), which) if name is None else ((name, steps), f"{name}-{which}")
            )
            found.append(pytest.param(*values, id=label, marks=marks))
    return found


def killed(act: Callable[[], object], fatal: int) -> bool:
    """Do something in a process that is killed at its ``fatal``-th step; whether it came to that.

    A step is right before or right after a change.
    """

    def step(number: int) -> None:
        if number >= fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    ended = _ended(act, step)
    assert ended in {0, -signal.SIGKILL}
    return ended != 0


def fatal_steps(act: Callable[[], object], folder: Path, *, counted: bool = True) -> list[int]:
    """The steps at which a kill leaves a folder as no earlier step does.

    What two steps in a row leave differs only if there was a change between them, or something was
    written. The first of those that leave the same stands for all.

    Args:
        act: What is done.
        folder: What it changes.
        counted: Whether one more file of the same kind makes a difference.
    """
    told, tells = os.pipe()
    last: list[str] = []

    def step(number: int) -> None:
        shape = _shape(folder) if counted else sorted(set(_shape(folder)))
        if shape != last:
            last[:] = shape
            os.write(tells, f"{number}\n".encode())

    assert _ended(act, step) == 0
    os.close(tells)
    with os.fdopen(told) as lines:
        return [int(line) for line in lines]


def steps_on_hdfs(act: Callable[[], object]) -> int:
    """How many steps of `killed` there are in something that works on HDFS."""
    told, tells = os.pipe()
    assert _ended(act, lambda _: os.write(tells, b".")) == 0
    os.close(tells)
    with os.fdopen(told) as dots:
        return len(dots.read())


def _ended(act: Callable[[], object], step: Callable[[int], object]) -> int:
    """Do something in a fork that is told of each step; how that ended."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _watch(step)
            act()
            code = 0
        except BaseException:  # noqa: BLE001 - shown, and told by the code
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _shape(folder: Path) -> list[str]:
    """The files and folders in a folder, without what is drawn in their names."""
    return sorted(_DRAWN.sub("*", str(path.relative_to(folder))) for path in folder.rglob("*"))


def _watch(step: Callable[[int], object]) -> None:
    steps, lock = count(), Lock()

    def told() -> None:
        with lock:
            step(next(steps))

    for owner, names in ((local.os, CHANGES), (WebHdfs, HDFS_CHANGES)):
        for name in names:
            change = getattr(owner, name)

            def watched(*args: Any, change: Any = change, **given: Any) -> Any:
                told()
                found = change(*args, **given)
                told()
                return found

            setattr(owner, name, watched)
