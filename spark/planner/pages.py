"""One message of the protocol as lines: the first says all but its long lists, which follow.

A list of a message's body travels in pages when it is long: ``"pages": {"files": 3}`` in the first
line says that the next three lines are arrays, the parts of the list ``files``. So no line, and no
text in the JVM, grows with the number of files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

_LONG: Final = 100
_PAGE_CHARACTERS: Final = 1 << 20


def read_message(line: bytes, following: Iterable[bytes], body: str) -> dict[str, Any]:
    """A message whose first line was read.

    Args:
        line: The first line.
        following: The lines after it; no more are taken than belong to the message.
        body: The member that holds the lists.

    Raises:
        ValueError: This is no message, or it is cut off.
    """
    message: dict[str, Any] = json.loads(line)
    rest = iter(following)
    # all are taken before any is parsed: what follows is the next message in any case
    pages = {
        name: [next(rest, b"") for _ in range(count)]
        for name, count in (message.pop("pages", None) or {}).items()
    }
    for name, lines in pages.items():
        if not all(page.endswith(b"\n") for page in lines):
            raise ValueError(f"the pages of {name} are cut off")
        message[body][name] = [element for page in lines for element in json.loads(page)]
    return message


def lines_of(message: Mapping[str, Any], body: str) -> list[bytes]:
    """The lines of a message, each with its line feed.

    Raises:
        ValueError: It holds what JSON has no text for.
    """
    content = message[body]
    if not isinstance(content, dict):
        return [line_of(message)]
    pages = {
        name: list(_pages(value))
        for name, value in content.items()
        if isinstance(value, list) and _is_long(value)
    }
    if not pages:
        return [line_of(message)]
    short = {name: value for name, value in content.items() if name not in pages}
    counts = {name: len(lines) for name, lines in pages.items()}
    first = line_of({**message, body: short, "pages": counts})
    return [first, *(line for lines in pages.values() for line in lines)]


def _is_long(elements: Sequence[Any]) -> bool:
    texts = sum(len(element) for element in elements if isinstance(element, str))
    return len(elements) > _LONG or texts > _PAGE_CHARACTERS


def _pages(elements: Sequence[Any]) -> Iterator[bytes]:
    page: list[str] = []
    size = 0
    for element in elements:
        text = _text(element)
        if page and size + len(text) > _PAGE_CHARACTERS:
            yield f"[{','.join(page)}]\n".encode("ascii")
            page, size = [], 0
        page.append(text)
        size += len(text)
    yield f"[{','.join(page)}]\n".encode("ascii")


def line_of(message: Mapping[str, Any]) -> bytes:
    """A message without pages, with its line feed."""
    return f"{_text(message)}\n".encode("ascii")


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
