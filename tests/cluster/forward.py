"""forward NETNS PORT: 127.0.0.1:PORT of this machine leads to 127.0.0.1:PORT inside a network namespace.

A socket belongs to the namespace of the thread that made it: one thread lives inside and makes sockets, everything else
happens outside.
"""

import asyncio
import ctypes
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor

CLONE_NEWNET = 0x40000000


def enter(namespace):
    fd = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"cannot enter the network namespace {namespace}")
    os.close(fd)


async def pump(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


async def main(namespace, port):
    inside = ThreadPoolExecutor(1, initializer=enter, initargs=(namespace,))
    loop = asyncio.get_running_loop()

    def connect():
        return socket.create_connection(("127.0.0.1", port), timeout=5)

    async def serve(reader, writer):
        try:
            sock = await loop.run_in_executor(inside, connect)
            sock.setblocking(False)
            there = await asyncio.open_connection(sock=sock)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))
        there[1].close()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    await server.serve_forever()


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
