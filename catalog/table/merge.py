"""The builder of a merge: clause by clause, then `execute`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from icecomb.format.argument import any_text
from icecomb.format.errors import ValidationError
from icecomb.format.spec.snapshot import MAIN_BRANCH

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.catalog.table.row_operations import RowOperations
    from icecomb.format.row_changes.merge import MergeResult
    from icecomb.format.row_changes.merge_clause import Clause


class Merge:
    """A merge of rows into a table, being described; nothing happens before `execute`.

    Of the clauses of a kind, the first whose condition is true applies to a row; an unknown
    condition is not true. Conditions and values are SQL text (DuckDB's), in which
    columns of the table are ``t.column`` and those of the source ``s.column``, unless other aliases
    are given. Values that are plain columns need no DuckDB.

    >>> (  # doctest: +SKIP
    ...     table.merge(changes, on=["id"])
    ...     .when_matched_delete("s.op = 'D'")
    ...     .when_matched_update({"amount": "t.amount + s.amount"})
    ...     .when_not_matched_insert_all("s.op <> 'D'")
    ...     .execute()
    ... )

    Args:
        operations: The table or the transaction.
        source: The rows, as for `Table.append`; they may have other columns, too.
        on: The columns that are equal in both, or SQL text that begins with such equalities:
            ``"t.id = s.key AND t.day >= s.since"``. Nulls equal nothing.
        target_alias: The alias of the table in SQL.
        source_alias: The alias of the source in SQL.
        branch: The branch to commit to.
        snapshot_properties: More keys of the snapshot's summary.
    """

    def __init__(
        self,
        operations: RowOperations,
        source: Any,
        on: str | Sequence[str],
        *,
        target_alias: str = "t",
        source_alias: str = "s",
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        from icecomb.format.row_changes.merge_clause import merge_condition

        aliases = target_alias, source_alias
        if target_alias.lower() == source_alias.lower() or not all(map(str.isidentifier, aliases)):
            raise ValidationError(
                f"{target_alias!r} and {source_alias!r} cannot be the names of table and source",
                hint="Use two different words.",
            )
        self._operations = operations
        self._source = source
        self._condition = merge_condition(on, target_alias, source_alias)
        self._aliases = aliases
        self._branch = branch
        self._snapshot_properties = snapshot_properties
        self._matched: list[Clause] = []
        self._not_matched: list[Clause] = []
        self._not_matched_by_source: list[Clause] = []
        self._is_tried = False

    def __repr__(self) -> str:
        tried = (
            "executed, or refused" if self._is_tried else "nothing has happened before execute()"
        )
        return f"<{type(self).__name__}: {tried}>"

    def when_matched_update(self, values: Mapping[str, str], condition: str | None = None) -> Self:
        """Replace matched rows of the table: the given columns get values, others stay.

        Args:
            values: SQL text by column: ``{"amount": "t.amount + s.amount"}``.
            condition: SQL text that limits these rows; default all.
        """
        return self._add(self._matched, "UPDATE", condition, values)

    def when_matched_update_all(
        self, condition: str | None = None, except_cols: Sequence[str] = ()
    ) -> Self:
        """Replace rows of the table by their matches, whose other columns are ignored.

        Args:
            condition: SQL text that limits these rows; default all.
            except_cols: Columns of the table that do not change.
        """
        return self._add(self._matched, "UPDATE", condition, None, except_cols)

    def when_matched_delete(self, condition: str | None = None) -> Self:
        """Delete matched rows of the table."""
        return self._add(self._matched, "DELETE", condition)

    def when_not_matched_insert(
        self, values: Mapping[str, str], condition: str | None = None
    ) -> Self:
        """Insert rows for those of the source without a match.

        Args:
            values: SQL text by column: ``{"id": "s.id", "state": "'new'"}``; other columns get
                their default, or null.
            condition: SQL text that limits these rows; default all.
        """
        return self._add(self._not_matched, "INSERT", condition, values)

    def when_not_matched_insert_all(
        self, condition: str | None = None, except_cols: Sequence[str] = ()
    ) -> Self:
        """Insert the rows of the source without a match; their other columns are ignored.

        Args:
            condition: SQL text that limits these rows; default all.
            except_cols: Columns of the table that get their default, or null.
        """
        return self._add(self._not_matched, "INSERT", condition, None, except_cols)

    def when_not_matched_by_source_update(
        self, values: Mapping[str, str], condition: str | None = None
    ) -> Self:
        """Replace rows of the table without a match: the given columns get values, others stay.

        Such a clause reads the whole table.

        Args:
            values: SQL text by column, with columns of the table only.
            condition: SQL text that limits these rows; default all.
        """
        return self._add(self._not_matched_by_source, "UPDATE", condition, values)

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> Self:
        """Delete rows of the table without a match; such a clause reads the whole table."""
        return self._add(self._not_matched_by_source, "DELETE", condition)

    def execute(self) -> MergeResult:
        """Execute the merge in one snapshot; none if nothing changes.

        The source is held in memory, the table is not. Rows are replaced as the property
        ``write.merge.mode`` says; the effect of concurrent writers depends on
        ``write.merge.isolation-level``.

        Returns:
            The numbers of rows inserted, updated and deleted, and the files.

        Raises:
            SchemaError: If a column is missing or does not fit, or a value does not fit its column.
            ExpressionError: If an expression names other columns, or cannot be computed.
            ValidationError: If there is no clause; several rows of the source match one row of the
                table, and not all clauses delete it; a column cannot be a key;
                a required column holds a null; or another commit contradicts this one.
            ConfigurationError: If the mode or the isolation level is unknown.
            MissingDependencyError: If an expression needs DuckDB.
            CommitFailedError: If other writers were first too often; nothing was committed.
            CommitStateUnknownError: If it is unknown whether the change was committed.
        """
        from icecomb.format.row_changes.merge_clause import MergeClauses

        clauses = MergeClauses(
            tuple(self._matched), tuple(self._not_matched), tuple(self._not_matched_by_source)
        )
        clauses.check()
        self._is_tried = True
        return self._operations._merge(  # noqa: SLF001 - the other half of this builder
            self._source,
            self._condition,
            clauses,
            aliases=self._aliases,
            branch=self._branch,
            snapshot_properties=self._snapshot_properties,
        )

    def _add(
        self,
        clauses: list[Clause],
        action: str,
        condition: str | None,
        values: Mapping[str, str] | None = None,
        except_cols: Sequence[str] = (),
    ) -> Self:
        from icecomb.format.row_changes.merge_clause import Action, Clause

        given = None if values is None else _sql_texts(values)
        if condition is not None:
            any_text("condition of a clause", condition)
        clauses.append(Clause(Action[action], condition, given, tuple(except_cols)))
        return self


def _sql_texts(values: Mapping[str, str]) -> dict[str, str]:
    """Return the expressions of a clause by column."""
    if not isinstance(values, Mapping):
        raise ValidationError(
            f"A clause sets columns by name, not {values!r}",
            hint='Give SQL text by column, as {"amount": "t.amount + s.amount"}.',
        )
    for column, value in values.items():
        any_text("column that a clause sets", column)
        if not isinstance(value, str):
            raise ValidationError(
                f"The value of column {column!r} must be SQL text, not {value!r}",
                hint=f"Write it as SQL: {str(value)!r}, with quotes inside for text and dates.",
            )
    return dict(values)
