"""Protocol messages as lines: pages of the long lists, then the rest.

A page is a line ``{"page": {"files": [...]}}``: parts to append to lists of the message's body.
Pages come before the message, so that a list can be sent while it is produced, before its length is
known, and no line, and no text on either side, grows with the number of files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

_LONG: Final = 100
_PAGE_CHARACTERS: Final = 1 << 20
_PAGE: Final = b'{"page":'


def read_message(line: bytes, following: Iterable[bytes], body: str) -> dict[str, Any]:
    """Read the rest of a message whose first line was read.

    Args:
        following: The lines after it; only those of the message are consumed.
        body: The member that holds the lists.
    """
    rest = iter(following)
    pages: list[bytes] = []
    # consume all before parsing any: even after an error, the next line starts a new message
    while line.startswith(_PAGE):
        pages.append(line)
        line = next(rest, b"")
    if not line.endswith(b"\n"):
        raise ValueError("a message is cut off")
    message: dict[str, Any] = json.loads(line)
    lists: dict[str, list[Any]] = {}
    pages.reverse()
    while pages:
        for name, elements in json.loads(pages.pop())["page"].items():
            lists.setdefault(name, []).extend(elements)
    if lists and body in message:
        message[body] = {**message[body], **lists}
    return message


def lines_of(message: Mapping[str, Any], body: str) -> Iterator[bytes]:
    """Yield the lines of a message, each with its line feed."""
    content = message[body]
    if not isinstance(content, dict):
        yield line_of(message)
        return
    long = {
        name: value
        for name, value in content.items()
        if isinstance(value, list) and _is_long(value)
    }
    for name, elements in long.items():
        yield from _pages(name, elements)
    short = {name: value for name, value in content.items() if name not in long}
    yield line_of({**message, body: short})


def page_of(lists: Mapping[str, Any]) -> bytes:
    """Return the line of a page with parts of lists."""
    return line_of({"page": lists})


def line_of(message: Mapping[str, Any]) -> bytes:
    """Return the line of a message without pages."""
    return f"{_text(message)}\n".encode("ascii")


def _is_long(elements: Sequence[Any]) -> bool:
    texts = sum(len(element) for element in elements if isinstance(element, str))
    return len(elements) > _LONG or texts > _PAGE_CHARACTERS


def _pages(name: str, elements: Sequence[Any]) -> Iterator[bytes]:
    page: list[str] = []
    size = 0
    for element in elements:
        text = _text(element)
        if page and size + len(text) > _PAGE_CHARACTERS:
            yield _page(name, page)
            page, size = [], 0
        page.append(text)
        size += len(text)
    yield _page(name, page)


def _page(name: str, elements: Sequence[str]) -> bytes:
    return f'{{"page":{{{_text(name)}:[{",".join(elements)}]}}}}\n'.encode("ascii")


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
