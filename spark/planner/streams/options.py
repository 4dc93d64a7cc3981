"""What options ask of a stream; names are Iceberg's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.property import flag, optional_number
from icecomb.format.spec.snapshot import MAIN_BRANCH, Operation, Snapshot
from icecomb.spark.planner.changes.columns import CHANGES_FROM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from icecomb.spark.planner.states import TableState

_FROM: Final = optional_number(
    "stream-from-timestamp", "Only snapshots of this time or later, in ms since 1970."
)
_MAX_FILES: Final = optional_number(
    "streaming-max-files-per-micro-batch", "How many files a batch has at most.", least=1
)
_MAX_ROWS: Final = optional_number(
    "streaming-max-rows-per-micro-batch", "With how many rows a batch is full.", least=1
)
_SKIP_DELETES: Final = flag(
    "streaming-skip-delete-snapshots", "Whether deletes are passed over.", default=False
)
_SKIP_OVERWRITES: Final = flag(
    "streaming-skip-overwrite-snapshots", "Whether overwrites are passed over.", default=False
)
_SKIPPING: Final = {
    Operation.DELETE.value: _SKIP_DELETES,
    Operation.OVERWRITE.value: _SKIP_OVERWRITES,
}
_BRANCH: Final = "branch"
_OF_BATCHES: Final = (
    "snapshot-id", "as-of-timestamp", "tag", "start-snapshot-id", "end-snapshot-id",
    "start-timestamp", "end-timestamp", "versionasof", "timestampasof",
)  # fmt: skip


class StreamOptions:
    """The options of one stream; ``async-…`` of Iceberg changes nothing about its rows.

    Args:
        name: The table's name, for messages.
        options: Of the query, in any case.

    Raises:
        ConfigurationError: One of them cannot be what it says.
    """

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self._name = name
        self._options = {key.lower(): text for key, text in options.items()}
        self.from_timestamp = _FROM.of(self._options)
        self.max_files = _MAX_FILES.of(self._options)
        self.max_rows = _MAX_ROWS.of(self._options)
        self._skipped = {kind for kind, skip in _SKIPPING.items() if skip.of(self._options)}

    def branch(self, state: TableState) -> str:
        """The branch that the stream follows.

        Raises:
            UnsupportedError: What is asked for is no branch.
            ValidationError: The table's name and an option name two branches.
        """
        chosen = next((option for option in _OF_BATCHES if option in self._options), None)
        named = self._options.get(_BRANCH)
        if chosen is not None:
            asked = f"the option {chosen}"
        elif state.metadata_table == CHANGES_FROM:
            asked = "the changes of one"
        elif state.metadata_table is not None:
            asked = f"its table {state.metadata_table}"
        elif state.time_travel:
            asked = "one of its versions"
        elif state.ref is not None and named is None:
            asked = f"branch {state.ref} of spark.wap.branch"
        elif state.branch is not None and named not in {None, state.branch}:
            raise ValidationError(
                f"The option {_BRANCH}={named} contradicts the name of table {self._name}, which "
                f"says branch {state.branch}",
                hint="leave one of them out",
                table=self._name,
            )
        else:
            return named or state.branch or MAIN_BRANCH
        raise UnsupportedError(
            f"A stream reads what is appended to a branch of table {self._name}, not {asked}",
            hint="name the table itself, a branch below it or the option branch, and leave the "
            "others out, also spark.wap.branch; stream-from-timestamp says where to begin",
            table=self._name,
        )

    def reads(self, snapshot: Snapshot) -> bool:
        """Whether the rows of a snapshot's files are new to the table.

        Raises:
            ValidationError: It changed rows that were there, and is not to be passed over.
        """
        operation = snapshot.operation
        if operation == Operation.APPEND:
            return True
        if operation == Operation.REPLACE or operation in self._skipped:
            return False
        skip = _SKIPPING.get(operation or "")
        raise ValidationError(
            f"Table {self._name}: snapshot {snapshot.snapshot_id} is of operation {operation}, "
            "and a stream has only rows that were appended",
            hint="start the query with a new checkpoint, after that snapshot"
            if skip is None
            else f"set the option {skip.key} to true to pass over such snapshots",
            table=self._name,
            snapshot_id=snapshot.snapshot_id,
        )
