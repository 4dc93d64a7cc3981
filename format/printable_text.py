r"""Text of others for a terminal: what terminals would obey is shown escaped, as in ``\x1b``.

Rows, properties, lock holders, paths and messages are other people's text. Control sequences move
the cursor, rename the window or fill the clipboard, and direction marks make one name look like
another.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, TextIO, TypeAlias

OBEYED: Final = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0 with escape, delete, C1 with the one-byte form of ESC [
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks, embeddings and isolates of direction
    "\xad\u180e\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # invisible
    "\ud800-\udfff"  # surrogates, which cannot be encoded
    "\U000e0000-\U000e0fff"  # tags
    "]"
)
"""A character that terminals obey, or do not show."""
_ExceptionInfo: TypeAlias = (
    "tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]"
)


def printable(text: str) -> str:
    """Escape a text to one line without control characters; joiners of scripts and emoji stay."""
    return text if text.isprintable() else OBEYED.sub(_escaped, text)


def printable_lines(text: str) -> str:
    """Escape each line of a text."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


class PrintableFormatter(logging.Formatter):
    """A formatter of log records by which each is a line, and each line of a traceback one."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's
        """Extend `logging.Formatter.formatMessage`."""
        return printable(super().formatMessage(record))

    def formatException(self, ei: _ExceptionInfo) -> str:  # noqa: N802 - logging's
        """Extend `logging.Formatter.formatException`."""
        return printable_lines(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - logging's
        """Extend `logging.Formatter.formatStack`."""
        return printable_lines(super().formatStack(stack_info))


@contextmanager
def logged_to(stream: TextIO) -> Iterator[None]:
    """Print warnings meanwhile, unless the program has handlers: Python prints them raw."""
    root = logging.getLogger()
    if root.handlers:
        yield
        return
    handler = logging.StreamHandler(stream)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(PrintableFormatter())
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
