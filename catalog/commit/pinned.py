"""Table and view objects are pinned to a version; which version each call is judged on.

* **Reading** shows the version that the object is pinned to: that of the last load, refresh or
  change through it. Threads that share the object move it, and only forwards: of two versions that
  come back at once, the one that the table or view had later stays.
* **A change** begins on the pinned version: names of columns are those it has, and what others have
  committed since is looked at when the change is committed. It is made on top of that, or refused
  where that contradicts it.
* **Nothing to do** (no row to delete, all rows equal, all files there) holds for the newest version
  only. A call that finds it on the pinned version compares that with the table's; if others have
  committed, it begins again on the newest. So a call that returns has seen a version that was the
  newest at some time between its begin and its end.
* **What is missing** (a snapshot, a branch, a staged change) is looked for in the newest version,
  too, before it is said to be missing.
* **A transaction** stays at the version that it began with. What it found to have nothing to do is
  looked at again when it is committed, as its changes are: it is refused if others have committed
  rows that it would have changed, as far as the isolation level asks for that.
* A table that was dropped and created again under its name is another one: changes are refused,
  `refresh` goes over to it.
"""

from __future__ import annotations

import os
import threading
from typing import Final, Generic

from icecomb.catalog.commit.pointer import V

# One for all objects, which so can be copied and pickled. A signal handler may refresh, too.
_GUARD: Final = threading.RLock()


class Pinned(Generic[V]):
    """The base class of objects that are pinned to a version."""

    _version: V

    def _move(self, seen: V, found: V) -> None:
        """Pin the object to a version, unless another thread has pinned it to a later one.

        Args:
            seen: The version that the object was pinned to before ``found`` was asked for.
            found: A version that was the newest, or was committed, after that.
        """
        with _GUARD:
            self._version = later(seen, self._version, found)


def later(seen: V, present: V, found: V) -> V:
    """Return which of two versions of a name came later; both were read after ``seen``.

    Where nobody has moved the object meanwhile (``present`` is ``seen``), whatever was found
    counts: the version of a table may also be set back (by a repair of a metastore's entry).
    """
    if present is seen:
        return found
    if None not in {present.uuid, found.uuid} and present.uuid != found.uuid:
        # a new table or view has the name: it does not go back to the old one
        return found if present.uuid == seen.uuid else present
    return found if found.follows(present) else present


# A forked process lacks the thread that holds it.
os.register_at_fork(
    before=_GUARD.acquire, after_in_parent=_GUARD.release, after_in_child=_GUARD.release
)
