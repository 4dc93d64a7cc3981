"""Upload of a whole HDFS file with retries."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

from icecomb.format.storage.hdfs.failure import HdfsDataLostError
from icecomb.format.storage.output_stream import Begin

_TRIES: Final = 5


def send_whole(begin: Begin, data: bytes | bytearray) -> None:
    """Create a file of these bytes; retry if a data node loses them.

    HdfsDataLostError is raised if every attempt failed.
    """

    def send() -> None:
        with begin() as upload:
            upload.write(data)

    for attempt in range(1, _TRIES):
        with suppress(HdfsDataLostError):
            return send()
        time.sleep(0.2 * attempt)
    return send()
