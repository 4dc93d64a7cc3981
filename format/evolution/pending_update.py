"""Changes of a table that are collected call by call and committed together.

    with table.update_schema() as update:
        update.add_column("city", StringType())

Each call is checked at once against the table as the caller sees it. The commit repeats the calls
on the table's current metadata, so that a commit that lost a race can be retried.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from icecomb.format.errors import ValidationError

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.format.spec.change.update import Changes
    from icecomb.format.spec.metadata import TableMetadata

E = TypeVar("E")


class PendingUpdate(ABC):
    """A change that a table or a transaction commits by the function `commit`."""

    starting_point: None = None

    @property
    def writes_files(self) -> bool:
        """Whether `apply` writes manifests."""
        return False

    def __init__(self, commit: Commit | None = None) -> None:
        self._commit = commit
        self._tried = False

    @abstractmethod
    def apply(self, base: TableMetadata) -> Changes:
        """Return the changes for this base; may be called again with a newer one."""

    def clean_up(self, committed: TableMetadata | None) -> None:  # noqa: B027 - few write files
        """Delete unneeded files, once the outcome is proven; None if nothing was committed."""

    def commit(self) -> None:
        """Commit the change; as a context manager, it is committed at the end of the block."""
        if self._commit is None:
            raise ValidationError(
                "Cannot commit: this change belongs to no table",
                hint="Begin the change with a method of a table or a transaction.",
            )
        if self._tried:
            raise ValidationError(
                "Cannot commit: this change was committed already, or rejected",
                hint="Begin a new one.",
            )
        self._tried = True
        self._commit(self)

    def __repr__(self) -> str:
        tried = "committed, or refused" if self._tried else "nothing has happened before commit()"
        return f"<{type(self).__name__}: {tried}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._tried:
            return  # its files may be needed: only the commit knows the outcome
        if kind is None:
            self.commit()
        else:
            self.clean_up(None)


Commit: TypeAlias = Callable[[PendingUpdate], object]


class RecordedUpdate(PendingUpdate, Generic[E]):
    """A change that records its calls, to repeat them on a newer base."""

    def __init__(self, base: TableMetadata, commit: Commit | None = None) -> None:
        super().__init__(commit)
        self._base = base
        self._calls: list[Callable[[E], None]] = []
        self._first: E | None = None

    @abstractmethod
    def _begin(self, base: TableMetadata) -> E:
        """Return the object on which the calls are made."""

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
