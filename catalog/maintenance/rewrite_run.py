"""Concurrent rewrites of file groups, committed together or in parts.

Commits take concurrent changes into account. Only groups in conflict are rewritten again.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from icecomb.format.arrow.batch_stream import thread_pool
from icecomb.format.cancellation import cancellable, stoppable
from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    IcecombError,
    OperationCanceledError,
)
from icecomb.format.maintenance.file_group import RewriteGroup
from icecomb.format.maintenance.rewrite_commit import RewriteConflictError, RewriteStart
from icecomb.format.spec.metadata import with_properties

if TYPE_CHECKING:
    from icecomb.catalog.commit.commit import Producer
    from icecomb.catalog.report.progress import Progress
    from icecomb.catalog.table.table import Table
    from icecomb.format.maintenance.rewrite_options import PackingOptions
    from icecomb.format.manifests.manifest import DataFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

_ROUNDS: Final = 3
"""How often a group is rewritten if others change its files each time."""
_THREADS: Final = 2
"""Groups at once, at most: each takes about 400 MiB."""
_POLL_SECONDS: Final = 0.2
"""How long one wait for groups is: a SIGINT that comes between Python's check for signals and the
wait itself does not end that wait."""


class Rewritten(Protocol):
    """A group whose new files are written, but in no table yet."""

    @property
    def group(self) -> RewriteGroup[Any]:
        """The files that were read."""

    @property
    def files(self) -> Sequence[DataFile]:
        """The files that were written."""

    def release(self) -> None:
        """Release resources needed only by the commit."""

    def discard(self, io: FileIO) -> None:
        """Delete the new files."""


G = TypeVar("G", bound=RewriteGroup[Any])
R = TypeVar("R", bound=Rewritten)


class RewriteRun(ABC, Generic[G, R]):
    """One rewrite of some of a table's files, which moves the table to the committed versions.

    Attributes:
        rewritten: The committed groups.
        failed_files: Number of files that could not be rewritten, or not be committed.
    """

    def __init__(
        self, table: Table, branch: str, options: PackingOptions, progress: Progress
    ) -> None:
        self._table = table
        self._branch = branch
        self._grouping = options
        self._progress = progress
        self._name = ".".join(table.name())
        self._numbers = 0
        self.rewritten: list[R] = []
        self.failed_files = 0

    @abstractmethod
    def plan_again(self, groups: Sequence[G]) -> list[G]:
        """Return what is left of groups that others changed, planned on the current metadata."""

    @abstractmethod
    def rewriter(self, groups: Sequence[G]) -> Callable[[int, G, int], R]:
        """Return the function that rewrites one group, based on the current metadata.

        It takes the group's number, the group, and how many of its files to read at once.
        """

    @abstractmethod
    def replacement(self, start: RewriteStart, done: Sequence[R]) -> Producer:
        """Return the producer that commits groups."""

    def rewrite(self, groups: Sequence[G]) -> None:
        """Rewrite and commit groups; a failed one raises unless they are committed in parts."""
        self._table.check_new_files()
        commits = self._grouping.max_commits
        if commits is None:
            self._all_at_once(groups)
        else:
            self._in_parts(groups, commits)

    def _all_at_once(self, groups: Sequence[G]) -> None:
        """Commit all groups at once; those to be rewritten again follow in another."""
        for _ in range(_ROUNDS):
            start = self._start()
            done: list[R] = []
            try:
                with closing(self._written(groups)) as outcomes:
                    done.extend(outcome.result() for _, outcome in outcomes)
            except BaseException:
                for one in done:
                    one.discard(self._table.io)
                raise
            again = self._commit(start, done)
            groups = self._planned_again(again)
            if not groups:
                return
        self._give_up(groups)

    def _in_parts(self, groups: Sequence[G], commits: int) -> None:
        """Commit groups in parts as they are done; count failures and go on with the rest."""
        failures = 0
        for _ in range(_ROUNDS):
            start = self._start()
            size = -(-len(groups) // commits)
            again: list[G] = []
            with closing(self._parts(groups, size)) as parts:
                for part in parts:
                    outcome = self._attempt(start, part)
                    if not isinstance(outcome, IcecombError):
                        again += outcome
                        continue
                    failures += 1
                    if failures > self._grouping.max_failed_commits:
                        raise outcome
            groups = self._planned_again(again)
            if not groups:
                return
        self._give_up(groups)

    def _parts(self, groups: Sequence[G], size: int) -> Generator[list[R], None, None]:
        """Yield rewritten groups, ``size`` at a time; failed ones are counted and left out."""
        waiting: list[R] = []
        try:
            with closing(self._written(groups)) as outcomes:
                for group, outcome in outcomes:
                    try:
                        waiting.append(outcome.result())
                    except OperationCanceledError:
                        raise
                    except (IcecombError, OSError) as error:
                        self._fail([group], f"not rewritten: {error}")
                    if len(waiting) >= size:
                        part, waiting = waiting, []
                        yield part
            if waiting:
                part, waiting = waiting, []
                yield part
        finally:
            for one in waiting:
                one.discard(self._table.io)

    def _attempt(self, start: RewriteStart, part: list[R]) -> list[G] | IcecombError:
        """Return the result of `_commit`, or the reason why nothing was committed."""
        try:
            return self._commit(start, part)
        except (CommitStateUnknownError, OperationCanceledError):
            raise
        except IcecombError as error:
            self._fail([one.group for one in part], f"not committed: {error.message}")
            return error

    def _fail(self, groups: Sequence[RewriteGroup[Any]], why: str) -> None:
        self.failed_files += sum(len(group.tasks) for group in groups)
        self._progress.say(f"{self._name}: {len(groups)} groups were {why}")

    def _commit(self, start: RewriteStart, done: list[R]) -> list[G]:
        """Commit groups, discard those not committed, and return those to be rewritten again."""
        again: list[G] = []
        left = done
        while left:
            try:
                self._table.commit(self.replacement(start, left))
            except RewriteConflictError as error:
                conflicting = [one for at, one in enumerate(left) if at in error.groups]
                left = [one for at, one in enumerate(left) if at not in error.groups]
                for one in conflicting:
                    one.discard(self._table.io)
                    again.append(one.group)  # type: ignore[arg-type]  # it was made of a G
                self._progress.say(f"{self._name}: {error.message}")
                continue
            except CommitStateUnknownError:
                raise
            except IcecombError:
                for one in left:
                    one.discard(self._table.io)
                raise
            for one in left:
                one.release()
            self.rewritten += left
            break
        return again

    def _planned_again(self, groups: Sequence[G]) -> list[G]:
        if not groups:
            return []
        self._table.refresh()
        return self.plan_again(groups)

    def _give_up(self, groups: Sequence[G]) -> None:
        if self._grouping.max_commits is None and not self.rewritten:
            raise CommitFailedError(
                f"{self._name}: others changed the files each time that they were rewritten",
                hint="Try again later, or in smaller groups: max-file-group-size-bytes.",
                table=self._name,
            )
        self.failed_files += sum(len(group.tasks) for group in groups)

    def _written_by(self) -> TableMetadata:
        """Return the current metadata with the properties by which this object writes files."""
        return with_properties(self._table.metadata, self._table.write_properties)

    def _start(self) -> RewriteStart:
        return RewriteStart.of(self._table.metadata, self._branch)

    def _written(self, groups: Sequence[G]) -> Generator[tuple[G, Future[R]], None, None]:
        """Yield the groups with their outcomes, as they are done; the caller owns the files."""
        rewrite = self.rewriter(groups)
        cores = os.cpu_count() or 1
        jobs = max(min(self._grouping.concurrent, cores, _THREADS, len(groups)), 1)
        readers = max(min(8, cores) // jobs, 1)
        files = sum(len(group.tasks) for group in groups)
        waiting = list(reversed(groups))
        running: dict[Future[R], G] = {}
        with (
            stoppable() as wanted,
            self._progress.task(f"rewriting {self._name}", files, "files") as advance,
            thread_pool(jobs) as pool,
        ):

            def work(number: int, group: G) -> R:
                with cancellable(wanted):
                    return rewrite(number, group, readers)

            try:
                while waiting or running:
                    while waiting and len(running) < jobs:
                        group = waiting.pop()
                        self._numbers += 1
                        context = copy_context()
                        future = pool.submit(context.run, work, self._numbers, group)
                        running[future] = group
                    done, _ = wait(running, _POLL_SECONDS, FIRST_COMPLETED)
                    for future in done:
                        group = running.pop(future)
                        advance(len(group.tasks))
                        yield group, future
            finally:
                # interrupted or given up: no caller takes the results of these
                wanted.cancel()
                for future in running:
                    with suppress(BaseException):
                        future.result().discard(self._table.io)
