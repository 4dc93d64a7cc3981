"""Errors of icecomb: one root and a few families, each also the builtin that callers expect.

Every error carries a message (what failed, where, what was found), an optional hint (what to do
next) and a context of named facts (`table`, `path`, ...) for programs and logs.
"""

from typing import ClassVar, Final

from icecomb.format.secret import without_secrets

REPEATED_FILE: Final = "remove the file, and add it once"
"""The hint about a data file that a table has more than once."""
REPEATED_FILE_OR_COPY: Final = (
    f"{REPEATED_FILE}; or write with write.delete.mode and write.merge.mode copy-on-write"
)
"""The same where only a change by position is refused."""


class IcecombError(Exception):
    """The base class of every error that icecomb raises on purpose.

    Args:
        message: One sentence: what failed, where, and what was found.
        hint: Advice on what the reader can do next.
        **context: Named facts, for example `table="db.t"` or `path="/x"`.

    Secrets in them are hidden: logins and signatures of URLs, and those of settings.

    Attributes:
        message: The sentence without the hint.
        hint: The advice, or None.
        context: The named facts.
        retryable: Whether the same call may succeed when repeated on refreshed metadata.
    """

    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None, **context: object) -> None:
        self.message = without_secrets(message)
        super().__init__(self.message)
        self.hint = hint and without_secrets(hint)
        self.context = {
            name: without_secrets(fact) if isinstance(fact, str) and "://" in fact else fact
            for name, fact in context.items()
        }

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


def reason_of(error: BaseException) -> str:
    """Return the message of an error without its hint, to be quoted in another message."""
    return error.message if isinstance(error, IcecombError) else str(error)


class ValidationError(IcecombError, ValueError):
    """An argument or a requested change contradicts the table or the specification."""


class AlreadyCommittedError(ValidationError):
    """The table already has the snapshot of an operation that is to be committed."""


class AlreadyPublishedError(ValidationError):
    """The changes of a snapshot that is to be published are part of `main` already."""


class ConflictError(ValidationError):
    """Other commits contradict a change that began before them; proven not committed.

    ``context`` has ``snapshot_ids``, those commits, oldest first, as far as they are known;
    ``file_count``, the number of files that contradict the change; and ``path``, one of them.
    """

    retryable = True


class SchemaError(ValidationError):
    """A schema, or a change to one, is not valid."""


class ExpressionError(ValidationError):
    """A predicate cannot be parsed, or cannot be bound to a schema."""


class CorruptFileError(IcecombError, ValueError):
    """A file of a table is damaged or of the wrong kind; `context["path"]` names it."""


class UnsupportedError(IcecombError, NotImplementedError):
    """A feature of the specification or of another system that icecomb does not support."""


class FileIOError(IcecombError, OSError):
    """A file system call failed."""


class NoSuchFileError(FileIOError, FileNotFoundError):
    """A file that a table refers to does not exist."""


class FileAlreadyExistsError(FileIOError, FileExistsError):
    """A file that must be created exists already; it was left unchanged."""


class FileStateUnknownError(FileIOError):
    """A file may have been created, or may still appear: the storage's answers were lost."""


class NoSuchTableError(IcecombError, LookupError):
    """The catalog has no table of this name."""


class NoSuchIcebergTableError(NoSuchTableError):
    """The table of this name is not an Iceberg table."""


class NoSuchViewError(IcecombError, LookupError):
    """The catalog has no view of this name."""


class NoSuchIcebergViewError(NoSuchViewError):
    """The entry of this name is not an Iceberg view."""


class NoSuchNamespaceError(IcecombError, LookupError):
    """The catalog has no namespace of this name."""


class NoSuchSnapshotError(IcecombError, LookupError):
    """The table has no such snapshot, branch or tag."""


class TableAlreadyExistsError(IcecombError, ValueError):
    """The name of a new table is taken."""


class ViewAlreadyExistsError(TableAlreadyExistsError):
    """The name of a new table or view is taken by a view."""


class NamespaceAlreadyExistsError(IcecombError, ValueError):
    """The name of a new namespace is taken."""


class NamespaceNotEmptyError(IcecombError, ValueError):
    """A namespace that still holds tables cannot be dropped."""


class CommitFailedError(IcecombError):
    """Another writer was first: proven that nothing was committed, so it is safe to retry."""

    retryable = True


class CommitStateUnknownError(IcecombError):
    """The outcome of a commit is unknown; nothing was deleted."""


class LockTimeoutError(CommitFailedError, TimeoutError):
    """A lock was not granted in time; nothing was committed."""


class OperationCanceledError(IcecombError):
    """The requester stopped waiting for the work, which ended before it changed anything."""


class MetastoreError(IcecombError, ConnectionError):
    """The Hive metastore cannot be reached, or rejected a call."""


class ConfigurationError(ValidationError):
    """A setting is missing, unknown, or has an invalid value."""


class MissingDependencyError(IcecombError, ImportError):
    """A library that this feature needs is not installed."""


class JavaError(IcecombError, RuntimeError):
    """Java is missing, too old, or a Java process failed."""


class MigrationError(IcecombError):
    """A migration step cannot continue; the journal records what was done so far."""


# Earlier names, kept for programs that catch them.
FileMissingError = NoSuchFileError
FileExistsAlreadyError = FileAlreadyExistsError


UNREADABLE: Final = (
    CorruptFileError,
    MissingDependencyError,
    OSError,
    UnsupportedError,
    ValidationError,
)
"""The errors about a file that is damaged or missing, or that its store does not hand out."""
