"""HTTP/2 for the WebChannel client, as browsers use it: requests and long answers side by side on one connection."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError

from support.patience import PATIENCE
from support.ways import SILENCE_SECONDS, Answer, Download

WINDOW = 1 << 24


class _Stream:
    """One request and its answer, while it comes."""

    def __init__(self, connection: _Connection, number: int) -> None:
        self._connection = connection
        self._number = number
        #: Bytes, None at the end, or the error that broke it.
        self.came: queue.Queue[bytes | Exception | None] = queue.Queue()
        self.head: queue.Queue[list[tuple[str, str]] | Exception] = queue.Queue()
        self.has_ended = False
        self.status = 0
        self.headers: dict[str, str] = {}

    def wait_for_head(self, seconds: float) -> None:
        try:
            head = self.head.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError("no answer") from None
        if isinstance(head, Exception):
            raise ConnectionError(str(head)) from head
        self.headers = {name: value for name, value in head if not name.startswith(":")}
        self.status = int(dict(head)[":status"])

    def pieces(self) -> Iterator[bytes]:
        while True:
            try:
                piece = self.came.get(timeout=SILENCE_SECONDS)
            except queue.Empty:
                raise TimeoutError("silence") from None
            if isinstance(piece, Exception):
                raise ConnectionError(str(piece)) from piece
            if piece is None:
                return
            yield piece

    def cut(self) -> None:
        """Resets the stream; the connection stays open."""
        self._connection.reset(self._number)

    def close(self) -> None:
        if not self.has_ended:
            self.cut()

    def end(self, cause: Exception | None) -> None:
        if not self.has_ended:
            self.has_ended = True
            self.head.put(cause or ConnectionError("the answer has no head"))
            self.came.put(cause)


class _Connection:
    def __init__(self, address: str, reads: bool) -> None:
        host, port = address.rsplit(":", 1)
        self._authority = address
        self._socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._state = threading.Condition()
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._streams: dict[int, _Stream] = {}
        self.is_lost = False
        self._reads = reads
        self._unread: list[tuple[int, int]] = []
        self._h2.initiate_connection()
        if reads:
            self._h2.increment_flow_control_window(WINDOW)
        self._flush()
        threading.Thread(target=self._read, daemon=True).start()

    def _flush(self) -> None:
        self._socket.sendall(self._h2.data_to_send())

    def request(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> _Stream:
        with self._state:
            number = self._h2.get_next_available_stream_id()
            stream = self._streams[number] = _Stream(self, number)
            head = [(":method", method), (":scheme", "http"), (":authority", self._authority), (":path", target)]
            head += [(name.lower(), value) for name, value in headers.items()]
            self._h2.send_headers(number, head, end_stream=not body)
            if not body and self._reads:
                self._h2.increment_flow_control_window(WINDOW, number)
            self._flush()
            while body:
                room = min(self._h2.local_flow_control_window(number), self._h2.max_outbound_frame_size)
                if room <= 0:
                    if not self._state.wait(PATIENCE) or self.is_lost or stream.has_ended:
                        break
                    continue
                piece, body = body[:room], body[room:]
                self._h2.send_data(number, piece, end_stream=not body)
                self._flush()
            return stream

    def reset(self, number: int) -> None:
        with self._state:
            stream = self._streams.pop(number, None)
            if stream is None:
                return
            with suppress(ProtocolError, OSError):
                self._h2.reset_stream(number, ErrorCodes.CANCEL)
                self._flush()
            stream.end(ConnectionError("cut"))

    def _read(self) -> None:
        try:
            while received := self._socket.recv(65536):
                with self._state:
                    for event in self._h2.receive_data(received):
                        self._take(event)
                    self._flush()
                    self._state.notify_all()
        except (OSError, ProtocolError):
            pass  # Waiting requests are notified below.
        with self._state:
            self.is_lost = True
            for stream in self._streams.values():
                stream.end(ConnectionError("the connection has ended"))
            self._streams.clear()
            self._state.notify_all()
        self._socket.close()

    def _take(self, event: Any) -> None:
        stream = self._streams.get(getattr(event, "stream_id", 0) or 0)
        match event:
            case ResponseReceived() if stream:
                stream.head.put(event.headers)
            case DataReceived():
                if self._reads:
                    self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                else:
                    self._unread.append((event.flow_controlled_length, event.stream_id))
                if stream:
                    stream.came.put(event.data)
            case StreamEnded() if stream:
                del self._streams[event.stream_id]
                stream.end(None)
            case StreamReset() if stream:
                del self._streams[event.stream_id]
                stream.end(ConnectionError(f"reset with {event.error_code}"))
            case ConnectionTerminated():
                self.is_lost = True
            case WindowUpdated():
                pass  # Requests that wait for window space are woken anyway.

    def read_on(self) -> None:
        with self._state:
            self._reads = True
            for length, number in self._unread:
                self._h2.acknowledge_received_data(length, number)
            self._unread = []
            self._flush()

    def close(self) -> None:
        self.is_lost = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)


class Http2:
    """Cleartext HTTP/2 with prior knowledge; a lost connection is opened again."""

    def __init__(self, address: str, origin: str = "http://app.localhost:5000", *, reads: bool = True) -> None:
        """Without `reads` no flow-control window is widened before `read_on`."""
        self._address = address
        self._reads = reads
        self._headers = {"Origin": origin}
        self._connecting = threading.Lock()
        self._connection: _Connection | None = None

    def _request(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> _Stream:
        with self._connecting:
            if self._connection is None or self._connection.is_lost:
                self._connection = _Connection(self._address, self._reads)
            connection = self._connection
        try:
            return connection.request(method, target, body, {**self._headers, **headers})
        except ProtocolError as error:
            raise ConnectionError(repr(error)) from error

    def send(self, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Answer:
        stream = self._request(method, target, body, headers or {})
        stream.wait_for_head(30)
        return Answer(stream.status, stream.headers, b"".join(stream.pieces()))

    def open(self, target: str) -> Download:
        stream = self._request("GET", target, b"", {})
        stream.wait_for_head(SILENCE_SECONDS)
        return stream

    def read_on(self) -> None:
        self._reads = True
        assert self._connection is not None
        self._connection.read_on()

    def close(self) -> None:
        with self._connecting:
            if self._connection is not None:
                self._connection.close()
