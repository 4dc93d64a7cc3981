"""The options of rewriting data files and delete files: Iceberg's names, defaults and refusals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from icecomb.format.errors import ValidationError
from icecomb.format.property import Property, choice, flag, nearest, number, optional_number
from icecomb.format.spec.table_property import DELETE_TARGET_FILE_BYTES, TARGET_FILE_BYTES

_MIN_SHARE: Final = 0.75
_MAX_SHARE: Final = 1.8
_LONG: Final = (1 << 63) - 1
_INT: Final = (1 << 31) - 1


class Strategy(Enum):
    """How rows are put together; the value is Iceberg's word."""

    BIN_PACK = "binpack"
    SORT = "sort"
    Z_ORDER = "zorder"


class JobOrder(Enum):
    """Which groups come first."""

    NONE = "none"
    BYTES_ASC = "bytes-asc"
    BYTES_DESC = "bytes-desc"
    FILES_ASC = "files-asc"
    FILES_DESC = "files-desc"


class CopyMode(Enum):
    """Whether row groups are copied."""

    AUTO = "auto"
    NEVER = "never"
    REQUIRE = "require"


def _ratio(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise ValueError(text)
    return value


def _factor(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise ValueError(text)
    return value


_TARGET: Final = optional_number("target-file-size-bytes", "How long a new file is.", least=1)
_MIN: Final = optional_number("min-file-size-bytes", "Shorter files are rewritten.", least=0)
_MAX: Final = optional_number("max-file-size-bytes", "Longer files are rewritten.", least=1)
_MIN_INPUT: Final = number(
    "min-input-files", 5, "So many files are a group worth rewriting.", least=1
)
_ALL: Final = flag("rewrite-all", "Whether all files are rewritten.", default=False)
_GROUP_BYTES: Final = number(
    "max-file-group-size-bytes", 100 << 30, "The most bytes of a group.", least=1
)
_GROUP_FILES: Final = number(
    "max-file-group-input-files", _LONG, "The most files of a group.", least=1
)
_CONCURRENT: Final = number(
    "max-concurrent-file-group-rewrites", 5, "How many groups are rewritten at once.", least=1
)
_PARTIAL: Final = flag(
    "partial-progress.enabled", "Whether groups are committed before all are done.", default=False
)
_COMMITS: Final = number("partial-progress.max-commits", 10, "In how many commits.", least=1)
_FAILED_COMMITS: Final = optional_number(
    "partial-progress.max-failed-commits", "How many of them may fail.", least=0
)
_STARTING: Final = flag(
    "use-starting-sequence-number",
    "Whether equality deletes that others add meanwhile still apply to the new files.",
    default=True,
)
_ORDER: Final = choice(
    "rewrite-job-order", [order.value for order in JobOrder], "Which groups come first."
)
_SPEC: Final = optional_number("output-spec-id", "The partition spec of new files.", least=0)
_DANGLING: Final = flag(
    "remove-dangling-deletes",
    "Whether delete files that apply to no data file any more are removed.",
    default=False,
)
_MAX_FILES: Final = optional_number("max-files-to-rewrite", "How many files at most.", least=1)
_DELETES: Final = number(
    "delete-file-threshold", _INT, "A file with so many delete files is rewritten.", least=0
)
_DELETE_RATIO: Final = Property(
    "delete-ratio-threshold",
    0.3,
    "A file is rewritten of whose rows so many are known to be deleted.",
    "a number above 0, at most 1",
    _ratio,
)
_COPY: Final = choice(
    "copy",
    [mode.value for mode in CopyMode],
    "Whether row groups of Parquet are copied instead of decoded, where that can be.",
)
_COMPRESSION: Final = Property(
    "compression-factor",
    1.0,
    "How much smaller new files are; here they are cut by their own size.",
    "a number above 0",
    _factor,
)
_SHUFFLE: Final = number(
    "shuffle-partitions-per-file", 1, "Of Spark's sort; here rows are sorted as a whole.", least=1
)
_Z_MOST: Final = number("max-output-size", _INT, "How many bytes of a z-value count.", least=1)
_Z_TEXT: Final = number(
    "var-length-contribution", 8, "How many bytes of a text or binary value count.", least=1
)

_ALWAYS: Final = (
    _TARGET, _MIN, _MAX, _MIN_INPUT, _ALL, _GROUP_BYTES, _GROUP_FILES, _CONCURRENT, _PARTIAL,
    _COMMITS, _FAILED_COMMITS, _STARTING, _ORDER, _SPEC, _DANGLING, _MAX_FILES, _DELETES,
    _DELETE_RATIO, _COPY,
)  # fmt: skip
_OF_POSITION_DELETES: Final = (
    _TARGET, _MIN, _MAX, _MIN_INPUT, _ALL, _GROUP_BYTES, _GROUP_FILES, _CONCURRENT, _PARTIAL,
    _COMMITS, _ORDER,
)  # fmt: skip
_OF_EQUALITY_DELETES: Final = (_TARGET, _CONCURRENT, _PARTIAL, _COMMITS, _FAILED_COMMITS, _ORDER)
_BY_STRATEGY: Final[Mapping[Strategy, tuple[Property[Any], ...]]] = {
    Strategy.BIN_PACK: (),
    Strategy.SORT: (_COMPRESSION, _SHUFFLE),
    Strategy.Z_ORDER: (_COMPRESSION, _SHUFFLE, _Z_MOST, _Z_TEXT),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """Which files are rewritten, and in which groups.

    Attributes:
        target_bytes: How long a new file is, about.
        min_file_bytes: Shorter files are rewritten.
        max_file_bytes: Longer ones, too.
        min_input_files: So many files are worth it.
        rewrite_all: Whether all files are rewritten, whatever their size.
        group_bytes: The most bytes of a group.
        group_files: The most files of a group.
        concurrent: How many groups are rewritten at once.
        max_commits: In how many commits; None for one of all groups, which all must succeed.
        max_failed_commits: How many of these may fail.
        job_order: Which groups come first.
        max_files: How many files are rewritten at most.
    """

    target_bytes: int
    min_file_bytes: int
    max_file_bytes: int
    min_input_files: int
    rewrite_all: bool
    group_bytes: int
    group_files: int
    concurrent: int
    max_commits: int | None
    max_failed_commits: int
    job_order: JobOrder
    max_files: int | None

    @property
    def longest_file_bytes(self) -> int:
        """How long a new file may get: half way from the target to what is too long."""
        return self.target_bytes + (self.max_file_bytes - self.target_bytes) // 2

    @classmethod
    def of_position_deletes(
        cls, given: Mapping[str, str], properties: Mapping[str, str]
    ) -> GroupOptions:
        """The options of rewriting position delete files.

        Args:
            given: What was given, by Iceberg's names.
            properties: Of the table, which say how long its delete files are.

        Raises:
            ValidationError: One is unknown, or they contradict each other.
            ConfigurationError: One cannot be set to that.
        """
        _check(given, _OF_POSITION_DELETES, "Rewriting position delete files")
        return cls(**_grouping(given, DELETE_TARGET_FILE_BYTES.of(properties)))

    @classmethod
    def of_equality_deletes(
        cls, given: Mapping[str, str], properties: Mapping[str, str]
    ) -> GroupOptions:
        """The options of converting equality delete files; see `of_position_deletes`."""
        _check(given, _OF_EQUALITY_DELETES, "Converting equality delete files")
        return cls(**_grouping(given, DELETE_TARGET_FILE_BYTES.of(properties)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteOptions(GroupOptions):
    """Which data files are rewritten, and how.

    Attributes:
        use_starting_sequence_number: Whether new files are as old as the state that was read.
        output_spec_id: The partition spec of new files; None for the table's.
        remove_dangling_deletes: Whether delete files that apply to nothing any more are removed.
        delete_file_threshold: A file with so many delete files is rewritten.
        delete_ratio_threshold: A file of whose rows so many are deleted is rewritten.
        copy: Whether row groups are copied.
        z_bytes: How many bytes of a z-value count.
        z_text_bytes: How many bytes of text do.
    """

    use_starting_sequence_number: bool
    output_spec_id: int | None
    remove_dangling_deletes: bool
    delete_file_threshold: int
    delete_ratio_threshold: float
    copy: CopyMode
    z_bytes: int
    z_text_bytes: int

    @classmethod
    def read(
        cls,
        given: Mapping[str, str],
        strategy: Strategy,
        properties: Mapping[str, str],
    ) -> RewriteOptions:
        """The options of a call.

        Args:
            given: What was given, by Iceberg's names.
            strategy: Says which there are.
            properties: Of the table, which say how long its files are.

        Raises:
            ValidationError: One is unknown, or they contradict each other.
            ConfigurationError: One cannot be set to that.
        """
        options: tuple[Property[Any], ...] = (*_ALWAYS, *_BY_STRATEGY[strategy])
        _check(given, options, f"Rewriting data files by {strategy.value}")
        return cls(
            **_grouping(given, TARGET_FILE_BYTES.of(properties)),
            use_starting_sequence_number=_STARTING.of(given),
            output_spec_id=_SPEC.of(given),
            remove_dangling_deletes=_DANGLING.of(given),
            delete_file_threshold=_DELETES.of(given),
            delete_ratio_threshold=_DELETE_RATIO.of(given),
            copy=_copy(given, strategy),
            z_bytes=_Z_MOST.of(given),
            z_text_bytes=_Z_TEXT.of(given),
        )


def _check(given: Mapping[str, str], options: Iterable[Property[Any]], what: str) -> None:
    """Refuse options that are unknown or make no sense.

    Raises:
        ValidationError, ConfigurationError: One is.
    """
    known = {one.key: one for one in options}
    if unknown := sorted(given.keys() - known.keys()):
        meant = nearest(unknown[0], known.keys())
        raise ValidationError(
            f"{what} has no option {unknown[0]}",
            hint=f"did you mean {meant}?" if meant else f"there are {', '.join(sorted(known))}",
        )
    for one in known.values():
        one.of(given)  # also those that have no effect here may not be nonsense


def _grouping(given: Mapping[str, str], default_target: int) -> dict[str, Any]:
    """The values of `GroupOptions`.

    Raises:
        ValidationError: They contradict each other.
    """
    target = _TARGET.of(given) or default_target
    least = _or(_MIN.of(given), int(target * _MIN_SHARE))
    most = _or(_MAX.of(given), int(target * _MAX_SHARE))
    if least >= target:
        raise _contradiction(_MIN.key, least, "not less than", target)
    if most <= target:
        raise _contradiction(_MAX.key, most, "not more than", target)
    commits = _COMMITS.of(given)
    return {
        "target_bytes": target,
        "min_file_bytes": least,
        "max_file_bytes": most,
        "min_input_files": _MIN_INPUT.of(given),
        "rewrite_all": _ALL.of(given),
        "group_bytes": _GROUP_BYTES.of(given),
        "group_files": _GROUP_FILES.of(given),
        "concurrent": _CONCURRENT.of(given),
        "max_commits": commits if _PARTIAL.of(given) else None,
        "max_failed_commits": _or(_FAILED_COMMITS.of(given), commits),
        "job_order": JobOrder(_ORDER.of(given)),
        "max_files": _MAX_FILES.of(given),
    }


def _copy(given: Mapping[str, str], strategy: Strategy) -> CopyMode:
    mode = CopyMode(_COPY.of(given))
    if strategy is Strategy.BIN_PACK:
        return mode
    if mode is CopyMode.REQUIRE:
        raise ValidationError(
            f"Option {_COPY.key} cannot be {mode.value} with {strategy.value}: rows that come into "
            "another order are decoded",
            hint=f"leave {_COPY.key} out, or rewrite by {Strategy.BIN_PACK.value}",
        )
    return CopyMode.NEVER


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _contradiction(key: str, value: int, how: str, target: int) -> ValidationError:
    return ValidationError(
        f"Option {key} is {value}, which is {how} the length of new files, {target}",
        hint=f"set {key} or {_TARGET.key} so that they fit",
    )
