"""The network between clients with plain sockets and a server: pieces of any size, and TLS."""

from __future__ import annotations

import random
import select
import selectors
import socket
import ssl
import threading
import time
from contextlib import suppress

from traffic.served import Served

#: What waits in one direction. Then its reader waits, as with a real connection.
WAITING_BYTES_MAX = 64 << 10
READ_BYTES_MAX = 32 << 10
#: How many bytes of a direction come in pieces of a few bytes, and how long: a head must be complete within 10 seconds,
#: also where the machine is slow.
FEW_BYTES = 1_500
FEW_SECONDS = 3.0
WAIT_SECONDS = 40.0


class _End:
    """One of the two sockets of a connection, and what waits to be sent to it."""

    def __init__(self, raw: socket.socket) -> None:
        self.raw = raw
        self.waiting = bytearray()
        #: No more comes from it.
        self.has_ended = False
        #: OpenSSL repeats a piece that did not fit.
        self.piece_length = 0
        #: TLS: what it needs before it goes on with the other direction.
        self.read_needs_write = False
        self.write_needs_read = False

    def read(self) -> bytes | None:
        """None: there is nothing yet. Empty: the end."""
        self.read_needs_write = False
        try:
            return self.raw.recv(READ_BYTES_MAX)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None
        except ssl.SSLWantWriteError:
            self.read_needs_write = True
            return None
        except OSError:
            return b""

    def write(self, length: int) -> bool:
        """False: the other side is gone."""
        self.write_needs_read = False
        self.piece_length = self.piece_length or length
        try:
            sent = self.raw.send(self.waiting[: self.piece_length])
        except (BlockingIOError, ssl.SSLWantWriteError):
            return True
        except ssl.SSLWantReadError:
            self.write_needs_read = True
            return True
        except OSError:
            return False
        del self.waiting[:sent]
        self.piece_length = 0
        return True

    @property
    def has_decrypted(self) -> bool:
        return isinstance(self.raw, ssl.SSLSocket) and self.raw.pending() > 0


class _Connection:
    def __init__(self, near: socket.socket, far: socket.socket, chance: random.Random) -> None:
        for raw in (near, far):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.setblocking(False)
        self.near = _End(near)
        self.far = _End(far)
        self.pace = chance.choice(["all", "all", "any", "few"])
        self.few = {self.near: FEW_BYTES, self.far: FEW_BYTES}
        self.few_until = time.monotonic() + FEW_SECONDS
        self.chance = chance

    def other(self, end: _End) -> _End:
        return self.far if end is self.near else self.near

    def length(self, end: _End) -> int:
        """Of the next piece."""
        if self.pace == "few" and self.few[end] > 0 and time.monotonic() < self.few_until:
            length = self.chance.randrange(1, 9)
            self.few[end] -= length
            return length
        return READ_BYTES_MAX if self.pace == "all" else self.chance.randrange(1, READ_BYTES_MAX)

    def move(self, end: _End) -> bool:
        """Reads from one end and writes to it. False: the connection is over."""
        other = self.other(end)
        while not end.has_ended and len(other.waiting) < WAITING_BYTES_MAX:
            came = end.read()
            if came is None:
                break
            other.waiting += came
            end.has_ended = not came
        for target in (other, end):
            if target.waiting and not target.write(self.length(target)):
                return False
        return not any(one.has_ended and not self.other(one).waiting for one in (self.near, self.far))

    def wishes(self, end: _End) -> int:
        wants_bytes = not end.has_ended and len(self.other(end).waiting) < WAITING_BYTES_MAX
        reads = (wants_bytes and not end.read_needs_write) or (end.waiting and end.write_needs_read)
        writes = (end.waiting and not end.write_needs_read) or (wants_bytes and end.read_needs_write)
        return (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if writes else 0)

    def close(self) -> None:
        if isinstance(self.far.raw, ssl.SSLSocket) and self.chance.random() < 0.5:
            with suppress(OSError, ValueError):
                self.far.raw.unwrap()
        for end in (self.near, self.far):
            end.raw.close()


class Tunnel:
    """A port of its own; each connection to it is one to the server. One thread has all of them, as `ssl` demands."""

    def __init__(self, port: int, secure: bool, chance: random.Random) -> None:
        self._port = port
        self._secure = secure
        self._chance = chance
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._connections: set[_Connection] = set()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            # What is decrypted is not seen by the selector.
            is_urgent = any(
                end.has_decrypted and connection.wishes(end) & selectors.EVENT_READ
                for connection in self._connections
                for end in (connection.near, connection.far)
            )
            for key, _ in self._selector.select(0 if is_urgent else None):
                if key.data is None:
                    self._accept()
                elif key.data[0] in self._connections:
                    self._move(*key.data)
            if is_urgent:
                for connection in list(self._connections):
                    if connection.far.has_decrypted:
                        self._move(connection, connection.far)

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        far = None
        try:
            far = socket.create_connection(("127.0.0.1", self._port), timeout=WAIT_SECONDS)
            if self._secure:
                context = ssl._create_unverified_context()
                select.select([near], [], [], WAIT_SECONDS)
                context.set_alpn_protocols(["h2" if near.recv(3, socket.MSG_PEEK) == b"PRI" else "http/1.1"])
                far = context.wrap_socket(far, server_hostname="localhost")
        except OSError:
            # The client sees that its connection ends, and says what it missed.
            near.close()
            if far is not None:
                far.close()
            return
        connection = _Connection(near, far, self._chance)
        self._connections.add(connection)
        for end in (connection.near, connection.far):
            self._selector.register(end.raw, selectors.EVENT_READ, (connection, end))

    def _move(self, connection: _Connection, end: _End) -> None:
        if not connection.move(end):
            self._connections.discard(connection)
            for one in (connection.near, connection.far):
                if one.raw in self._selector.get_map():
                    self._selector.unregister(one.raw)
            connection.close()
            return
        for one in (connection.near, connection.far):
            wishes = connection.wishes(one)
            is_registered = one.raw in self._selector.get_map()
            if not wishes and is_registered:
                self._selector.unregister(one.raw)
            elif wishes and not is_registered:
                self._selector.register(one.raw, wishes, (connection, one))
            elif wishes and self._selector.get_key(one.raw).events != wishes:
                self._selector.modify(one.raw, wishes, (connection, one))


class Network:
    """The addresses at which the clients of a lane reach its server: its own, and that of a tunnel."""

    def __init__(self, served: Served, seed: int, number: int) -> None:
        self._served = served
        self._chance = random.Random(f"{seed}/{number}/network")
        self._tunnel = Tunnel(served.port, served.secure, random.Random(f"{seed}/{number}/tunnel"))

    def address(self) -> str:
        """Of one session."""
        is_direct = self._chance.random() < 0.5 and not self._served.secure
        return f"127.0.0.1:{self._served.port}" if is_direct else self._tunnel.address
