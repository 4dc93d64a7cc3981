"""Filter for the loggers of libraries, which write URLs, headers and answers with secrets."""

from __future__ import annotations

import logging
from typing import Final

from icecomb.format.printable_text import PrintableFormatter
from icecomb.format.secret import without_secrets

_FORMATTER: Final = PrintableFormatter()
_CALLS: Final = {"httpRequest", "httpResponse"}
"""Attributes of the records of google-auth, for handlers that write more than messages."""


class _SecretFilter(logging.Filter):
    """A filter that lets all records pass, without the secrets in them."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        shown = without_secrets(text)
        if shown != text:
            record.msg, record.args = shown, ()
        for name in _CALLS & vars(record).keys():
            setattr(record, name, without_secrets(str(getattr(record, name))))
        if record.exc_info:
            record.exc_text = without_secrets(_FORMATTER.formatException(record.exc_info))
            record.exc_info = None
        return True


_FILTER: Final = _SecretFilter()


def hide_secrets(*loggers: str) -> None:
    """Let loggers of libraries, and those below them, write no secrets, whatever their level."""
    present = [*logging.root.manager.loggerDict]
    for each in loggers:
        # filters of a logger do not count for those below it
        for name in (each, *(name for name in present if name.startswith(f"{each}."))):
            logging.getLogger(name).addFilter(_FILTER)
