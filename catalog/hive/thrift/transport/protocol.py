"""Thrift's binary protocol, with replies that say which call they answer.

A proxy, or a server whose client gave up a call and went on, may send the reply to another call,
which would report a change as done that may not have happened.
"""

from __future__ import annotations

from typing import Final

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TMessageType

_LARGEST: Final = 0x7FFFFFFF
_REPLIES: Final = {TMessageType.REPLY, TMessageType.EXCEPTION}


class NumberedProtocol(TBinaryProtocolAccelerated):  # type: ignore[misc]
    """Calls carry running numbers, whatever the generated client says of them."""

    _called = ("", 0)

    def writeMessageBegin(self, name: str, type: int, seqid: int) -> None:  # noqa: A002, ARG002, N802 - thrift's
        """Begin a call."""
        self._called = (name, self._called[1] % _LARGEST + 1)
        super().writeMessageBegin(name, type, self._called[1])

    def readMessageBegin(self) -> tuple[str, int, int]:  # noqa: N802 - thrift's
        """Begin a reply; it must be the one to the last call."""
        name, kind, number = super().readMessageBegin()
        if (name, number) != self._called or kind not in _REPLIES:
            raise TProtocolException(
                TProtocolException.INVALID_DATA,
                f"the reply to another call came: {name[:80]!r}, number {number}",
            )
        return name, kind, number
