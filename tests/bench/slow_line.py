"""A line to a server that takes its time, in a process of its own: it delays bytes and reads none.

python -m tests.bench.slow_line PORT OF_SERVER MILLISECONDS
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys


async def _relay(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float
) -> None:
    loop = asyncio.get_running_loop()
    while data := await reader.read(1 << 18):
        if delay_s:
            loop.call_later(delay_s, writer.write, data)
        else:
            writer.write(data)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
    loop.call_later(delay_s, writer.close)


async def _serve(port: int, target: int, delay_s: float) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, here = await asyncio.open_connection("127.0.0.1", target)
        for each in (writer, here):
            each.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(_relay(reader, here, delay_s), _relay(there, writer, 0))

    server = await asyncio.start_server(answer, "127.0.0.1", port, backlog=256)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 1000))
