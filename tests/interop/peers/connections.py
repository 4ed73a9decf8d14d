"""TCP programs whose connections a proxy carries: many at a time, each closed by halves, beside one that nobody reads.

As a server it sends back what each connection sent, once that has closed its half; one that begins with "R" it resets,
and one that begins with "S" it does not read. As a client it says in a line of JSON how many connections were answered
in full, and how many were reset.
"""

from __future__ import annotations

import errno
import json
import socket
import struct
import sys
import threading

SIZE = 20_000


def read_all(connection: socket.socket) -> bytes:
    """What comes until the peer has closed its half."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def answer(connection: socket.socket, over: threading.Event) -> None:
    """The server's side of a connection."""
    with connection:
        first = connection.recv(1)
        if first == b"S":
            over.wait()
        elif first == b"R":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            connection.sendall(first + read_all(connection))


def serve(port: int) -> None:
    """Serves until it is ended."""
    over = threading.Event()
    with socket.create_server(("::", port), family=socket.AF_INET6, backlog=256) as listener:
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0], over), daemon=True).start()


def stuff(peer: str, port: int) -> tuple[socket.socket, int]:
    """A connection that nobody reads, full to the brim, and what it took."""
    connection = socket.create_connection((peer, port))
    connection.sendall(b"S")
    connection.settimeout(0.3)
    taken = 0
    try:
        while True:
            taken += connection.send(bytes(65536))
    except TimeoutError:
        return connection, taken


def ask(peer: str, port: int, number: int, answered: list[int], reset: list[int]) -> None:
    """A connection, which is to be answered, or reset if its number is a multiple of ten."""
    data = (b"R" if number % 10 == 0 else b"D") + number.to_bytes(4, "big") * (SIZE // 4)
    try:
        with socket.create_connection((peer, port)) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            if read_all(connection) == data:
                answered.append(number)
    except OSError as error:
        # the last: of a half that is closed after the reset has come
        if error.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN):
            raise
        reset.append(number)


def connect(peer: str, port: int, number: int) -> None:
    """So many connections at once."""
    stuck, taken = stuff(peer, port)
    answered: list[int] = []
    reset: list[int] = []
    threads = [threading.Thread(target=ask, args=(peer, port, n, answered, reset)) for n in range(1, number + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stuck.close()
    print(json.dumps({"answered": len(answered), "reset": len(reset), "stuck_bytes": taken}))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        connect(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
