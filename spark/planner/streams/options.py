"""Options of a stream, under Iceberg's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.property.property import flag, optional_number
from icecomb.format.spec.snapshot import MAIN_BRANCH, Operation, Snapshot
from icecomb.spark.planner.table.change_columns import KINDS_OF_CHANGES_FROM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from icecomb.spark.planner.table.states import TableState

_FROM: Final = optional_number(
    "stream-from-timestamp", "The earliest time of snapshots to read, in ms since 1970."
)
_MAX_FILES: Final = optional_number(
    "streaming-max-files-per-micro-batch", "The most files of a batch.", least=1
)
_MAX_ROWS: Final = optional_number(
    "streaming-max-rows-per-micro-batch", "The number of rows with which a batch is full.", least=1
)
_SKIP_DELETES: Final = flag(
    "streaming-skip-delete-snapshots", "Whether deletes are ignored.", default=False
)
_SKIP_OVERWRITES: Final = flag(
    "streaming-skip-overwrite-snapshots", "Whether overwrites are ignored.", default=False
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
    """The options of one stream; Iceberg's ``async-…`` is ignored: it does not affect rows."""

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self._name = name
        self._options = {key.lower(): text for key, text in options.items()}
        self.from_timestamp = _FROM.of(self._options)
        self.max_files = _MAX_FILES.of(self._options)
        self.max_rows = _MAX_ROWS.of(self._options)
        self._skipped = {kind for kind, skip in _SKIPPING.items() if skip.of(self._options)}

    def branch(self, state: TableState) -> str:
        """Return the branch that the stream follows."""
        chosen = next((option for option in _OF_BATCHES if option in self._options), None)
        named = self._options.get(_BRANCH)
        if chosen is not None:
            asked = f"the option {chosen}"
        elif state.metadata_table in KINDS_OF_CHANGES_FROM:
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
        """Return whether a stream reads the files of a snapshot: those of appends.

        `ValidationError` if it changed existing rows, and options do not skip it.
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
            else f"set the option {skip.key} to true to skip such snapshots",
            table=self._name,
            snapshot_id=snapshot.snapshot_id,
        )
