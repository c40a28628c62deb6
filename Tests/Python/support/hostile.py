"""Hostile peers: bare sockets, and handwritten HTTP/2 frames without any checks."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from support.patience import PATIENCE

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS, ACK, PADDED = 0x1, 0x4, 0x1, 0x8
INITIAL_WINDOW_SIZE = 4
ENHANCE_YOUR_CALM = 0xB


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def settings(**values: int) -> bytes:
    """SETTINGS with parameters `s<number>`; without any, an empty frame."""
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", int(name[1:]), value) for name, value in values.items()))


def _length(value: int, prefix: int) -> bytes:
    """An integer of HPACK whose first byte has no other bits (RFC 7541, 5.1)."""
    top = (1 << prefix) - 1
    if value < top:
        return bytes([value])
    rest, made = value - top, [top]
    while rest >= 0x80:
        made.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*made, rest])


def block(fields: Iterable[tuple[str, str]]) -> bytes:
    """A header block of literals that are not indexed, without Huffman coding."""
    made = b""
    for name, value in fields:
        made += b"\0" + _length(len(name.encode()), 7) + name.encode() + _length(len(value.encode()), 7) + value.encode()
    return made


def head(path: str, method: str = "GET", more: Iterable[tuple[str, str]] = ()) -> bytes:
    return block([(":method", method), (":scheme", "http"), (":path", path), (":authority", "h"), *more])


def request(stream: int, path: str, method: str = "GET", more: Iterable[tuple[str, str]] = ()) -> bytes:
    """A whole request in one HEADERS frame."""
    return frame(HEADERS, END_HEADERS | END_STREAM, stream, head(path, method, more))


def call(stream: int, method: str, message: bytes | None = None, encoding: str | None = None) -> bytes:
    """A gRPC call of the Firestore service; without a message only its head."""
    more = [("content-type", "application/grpc"), ("te", "trailers")]
    if encoding:
        more.append(("grpc-encoding", encoding))
    opened = frame(HEADERS, END_HEADERS, stream, head(f"/google.firestore.v1.Firestore/{method}", "POST", more))
    if message is None:
        return opened
    content = struct.pack(">BI", 1 if encoding else 0, len(message)) + message
    return opened + data(stream, content, ends=True)


def data(stream: int, content: bytes, ends: bool = False) -> bytes:
    """DATA frames as large as every peer must take them."""
    pieces = [content[start : start + 16_384] for start in range(0, len(content), 16_384)] or [b""]
    last = len(pieces) - 1
    return b"".join(frame(DATA, END_STREAM if ends and n == last else 0, stream, p) for n, p in enumerate(pieces))


def frames(received: bytes) -> list[tuple[int, int, int, bytes]]:
    """Kind, flags, stream and payload of the complete frames."""
    found, position = [], 0
    while len(received) - position >= 9:
        length = int.from_bytes(received[position : position + 3], "big")
        if len(received) - position < 9 + length:
            break
        kind, flags = received[position + 3], received[position + 4]
        stream = int.from_bytes(received[position + 5 : position + 9], "big") & 0x7FFF_FFFF
        found.append((kind, flags, stream, received[position + 9 : position + 9 + length]))
        position += 9 + length
    return found


def goaway(received: bytes) -> int | None:
    """The error code of the last GOAWAY."""
    codes = [int.from_bytes(payload[4:8], "big") for kind, _, _, payload in frames(received) if kind == GOAWAY]
    return codes[-1] if codes else None


class Peer:
    """One connection, which sends any bytes and need not read."""

    def __init__(self, port: int, receive_bytes: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(10)
        self.socket.connect(("127.0.0.1", port))
        self.received = b""

    def push(self, content: bytes, seconds: float = 10) -> bool:
        """False: the server has closed the connection, or does not read for this time."""
        try:
            self.socket.settimeout(seconds)
            self.socket.sendall(content)
        except OSError:
            return False
        return True

    def flood(self, content: bytes, seconds: float) -> int:
        """Sends the same bytes repeatedly, and reads nothing; returns the number of times."""
        sent, until = 0, time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and self.push(content, left):
            sent += 1
        return sent

    def read_to_end(self, seconds: float = PATIENCE) -> bytes:
        """The input until the server closes; AssertionError when it does not in this time."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                piece = self.socket.recv(1 << 18)
            except TimeoutError:
                break
            except OSError:
                return self.received
            if not piece:
                return self.received
            self.received += piece
        raise AssertionError(f"the connection is still open after {seconds} s; last came {self.received[-200:]!r}")

    def read_until(self, is_enough: Callable[[bytes], bool], seconds: float = PATIENCE) -> bytes:
        """The input once it is sufficient; AssertionError when it never is."""
        until = time.monotonic() + seconds
        while not is_enough(self.received):
            left = until - time.monotonic()
            assert left > 0, f"waited {seconds} s; came {self.received[-200:]!r}"
            self.socket.settimeout(left)
            with suppress(TimeoutError):
                piece = self.socket.recv(1 << 18)
                assert piece, f"the connection ended; came {self.received[-200:]!r}"
                self.received += piece
        return self.received

    def half_close(self) -> None:
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def vanish(self) -> None:
        """Closes with a reset, as the kernel of a program does that was killed with bytes unread."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self) -> None:
        self.socket.close()


def at_once(count: int, attack: Callable[[int], None]) -> None:
    """Runs the attack `count` times concurrently; raises an error of any of them."""
    with ThreadPoolExecutor(count) as threads:
        for done in [threads.submit(attack, number) for number in range(count)]:
            done.result()
