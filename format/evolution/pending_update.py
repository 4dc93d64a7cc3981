"""Changes of a table that are put together call by call, and committed at once.

    with table.update_schema() as update:
        update.add_column("city", StringType())

Each call is checked at once against the table as the caller sees it. At the commit the same calls
are made again on the table as it is by then, so that a commit that lost a race can be tried again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from icecomb.format.errors import ValidationError

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.update import Changes

E = TypeVar("E")


class PendingUpdate(ABC):
    """A change that a table or a transaction commits.

    Args:
        commit: Commits the change; that of the table it belongs to.
    """

    starting_point: None = None

    def __init__(self, commit: Commit | None = None) -> None:
        self._commit = commit
        self._tried = False

    @abstractmethod
    def apply(self, base: TableMetadata) -> Changes:
        """What is to change on this base; may be called again on a newer one.

        Raises:
            ValidationError: The change does not fit the table.
            CommitFailedError: Another writer changed what this change is about.
        """

    def clean_up(self, committed: TableMetadata | None) -> None:  # noqa: B027 - few write files
        """Delete files that are of no use, when it is proven what was committed.

        Args:
            committed: The table after the commit; None when nothing was committed.
        """

    def commit(self) -> None:
        """Commit the change; a context manager does so at its end.

        Raises:
            ValidationError: The change does not fit the table, or was committed already.
            CommitFailedError: Others were first; nothing was committed.
            CommitStateUnknownError: It cannot be told whether it was committed.
        """
        if self._commit is None:
            raise ValidationError(
                "Cannot commit: this change belongs to no table",
                hint="Begin the change by a method of a table or a transaction.",
            )
        if self._tried:
            raise ValidationError(
                "Cannot commit: this change was committed already, or refused",
                hint="Begin a new one.",
            )
        self._tried = True
        self._commit(self)

    def __repr__(self) -> str:
        tried = "committed, or refused" if self._tried else "nothing has happened before commit()"
        return f"<{type(self).__name__}: {tried}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._tried:
            return  # its files may be needed: only the commit knows what came of it
        if kind is None:
            self.commit()
        else:
            self.clean_up(None)


Commit: TypeAlias = Callable[[PendingUpdate], object]


class RecordedUpdate(PendingUpdate, Generic[E]):
    """A change that remembers its calls, to make them again on a newer base.

    Args:
        base: The table as the caller sees it.
        commit: See `PendingUpdate`.
    """

    def __init__(self, base: TableMetadata, commit: Commit | None = None) -> None:
        super().__init__(commit)
        self._base = base
        self._calls: list[Callable[[E], None]] = []
        self._first: E | None = None

    @abstractmethod
    def _begin(self, base: TableMetadata) -> E:
        """What the calls work on."""

    @property
    def _edit(self) -> E:
        if self._first is None:
            self._first = self._begin(self._base)
        return self._first

    def _record(self, call: Callable[[E], None]) -> None:
        call(self._edit)
        self._calls.append(call)

    def _replayed(self, base: TableMetadata) -> E:
        if base is self._base:
            return self._edit
        edit = self._begin(base)
        for call in self._calls:
            call(edit)
        return edit
