"""The result of examining a table's health."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from icecomb.catalog.report.finding import Severity
from icecomb.format.shell_command import shell_command

_ORDER: Final = {severity: at for at, severity in enumerate(Severity)}


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """Something that makes a table slow or large, or will.

    Attributes:
        code: A stable name for programs, such as `small-files`.
        severity: `PROBLEM`, `WARNING` or `NOTE`.
        evidence: The numbers, by name; sizes in bytes.
        words: The command that fixes it, after `icecomb`; None if there is none.
    """

    code: str
    severity: Severity
    message: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] | None = None

    @property
    def command(self) -> str | None:
        """The command as a line for a shell; None if there is none."""
        return self.command_with(())

    def command_with(self, options: Sequence[str]) -> str | None:
        """Return the command line with global options of `icecomb`."""
        if self.words is None:
            return None
        try:
            os.fsencode("".join((*options, *self.words)))
        except UnicodeEncodeError:  # a lone surrogate: no shell can pass such a name
            return None
        return shell_command(*self.words, options=options)

    def to_json(self, options: Sequence[str] = ()) -> dict[str, Any]:
        """Return the finding for programs."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "evidence": dict(self.evidence),
            "command": self.command_with(options),
        }


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The numbers of a table; sizes in bytes.

    Attributes:
        rows: Rows of the data files, deleted ones included.
        position_delete_files: Files of position deletes, vectors included.
        position_deletes: Rows that these delete, some perhaps twice.
        manifests: Manifests of the current snapshot that have live files.
        metadata_growth: Growth of the metadata file in bytes a day, over the time that its log
            covers; None if unknown.
        committed_ms: The current snapshot's time, milliseconds since the epoch; None for an empty
            table.
    """

    format_version: int
    files: int
    size: int
    rows: int
    position_delete_files: int
    position_deletes: int
    equality_delete_files: int
    equality_deletes: int
    partitions: int
    manifests: int
    manifest_bytes: int
    snapshots: int
    metadata_bytes: int
    metadata_growth: int | None
    committed_ms: int | None


@dataclass(frozen=True, slots=True)
class TableHealth:
    """The health of one table.

    Attributes:
        table: The table's name or folder.
        findings: The findings, the worst first.
        facts: The table's numbers; None if it could not be read.
        error: The reason why it could not be read.
        hint: The way to fix that.
    """

    table: str
    findings: tuple[HealthFinding, ...] = ()
    facts: TableFacts | None = None
    error: str | None = None
    hint: str | None = None

    @property
    def has_problem(self) -> bool:
        """Whether a finding is a problem, or the table could not be read."""
        found = any(one.severity is Severity.PROBLEM for one in self.findings)
        return found or self.error is not None

    @property
    def rank(self) -> tuple[Any, ...]:
        """A sort key, the worst table first: unreadable, then by problems, warnings and name."""
        kinds = [one.severity for one in self.findings]
        return (
            self.error is None,
            -kinds.count(Severity.PROBLEM),
            -kinds.count(Severity.WARNING),
            self.table,
        )

    def to_json(self, options: Sequence[str] = ()) -> dict[str, Any]:
        """Return the health for programs.

        Args:
            options: Global options that the commands need.
        """
        return {
            "table": self.table,
            "findings": [one.to_json(options) for one in self.findings],
            "facts": None if self.facts is None else asdict(self.facts),
            "error": self.error,
            "hint": self.hint,
        }


def worst_first(findings: Sequence[HealthFinding]) -> tuple[HealthFinding, ...]:
    """Sort findings by severity; those of one severity stay in their order."""
    return tuple(sorted(findings, key=lambda one: _ORDER[one.severity]))
