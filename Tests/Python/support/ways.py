"""Transports of WebChannel's requests: HTTP/1.1 here, HTTP/2 in `http2.py`."""

from __future__ import annotations

import http.client
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from support.patience import PATIENCE

#: Longer than a server may be silent: it announces its keep-alive interval, which is 30 seconds.
SILENCE_SECONDS = 50


@dataclass(frozen=True)
class Answer:
    status: int
    #: By names in lower case.
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


class Download(Protocol):
    """The answer to a GET while it is received."""

    status: int
    headers: dict[str, str]

    def pieces(self) -> Iterator[bytes]:
        """The received bytes, until a clean end; `OSError` or a kind of `ConnectionError` when it breaks."""
        ...

    def cut(self) -> None:
        """Breaks its connection; may be called from any thread."""
        ...

    def close(self) -> None: ...


class Way(Protocol):
    def send(self, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Answer: ...

    def open(self, target: str) -> Download: ...

    def close(self) -> None: ...


class _Http1Download:
    def __init__(self, connection: http.client.HTTPConnection, target: str, headers: dict[str, str]) -> None:
        self.connection = connection
        self.ended_well = False
        self.connection.request("GET", target, headers=headers)
        # The response owns it when the server closes after it.
        self._socket: socket.socket = self.connection.sock
        self._response = self.connection.getresponse()
        self.status = self._response.status
        self.headers = {name.lower(): value for name, value in self._response.getheaders()}

    def pieces(self) -> Iterator[bytes]:
        try:
            # An empty piece is the end of the body.
            while piece := self._response.read1(65536):
                yield piece
        except (http.client.HTTPException, ValueError) as error:
            raise ConnectionError(str(error)) from error
        if not self._response.isclosed():
            raise ConnectionError("the body broke off")
        self.ended_well = True

    def cut(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if not self.ended_well:
            self._response.close()
            self.connection.close()


def _forget_closed(kept: http.client.HTTPConnection) -> None:
    """An idle connection that is readable was closed by the server."""
    if kept.sock is not None and select.select([kept.sock], [], [], 0)[0]:
        kept.close()


class Http1:
    """HTTP/1.1: one persistent connection for POSTs, and one for GETs; overlapping GETs have one each."""

    def __init__(self, address: str, origin: str = "http://app.localhost:5000") -> None:
        self._address = address
        self._headers = {"Origin": origin}
        #: The last GET; when it has ended, its connection can be used again.
        self._downloading: _Http1Download | None = None
        self._taking = threading.Lock()
        self._connection = http.client.HTTPConnection(address, timeout=PATIENCE)

    def send(self, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Answer:
        _forget_closed(self._connection)
        try:
            self._connection.request(method, target, body, {**self._headers, **(headers or {})})
            response = self._connection.getresponse()
            received = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, received, response.read())
        except http.client.HTTPException as error:
            self._connection.close()
            raise ConnectionError(repr(error)) from error
        except OSError:
            self._connection.close()
            raise

    def send_and_leave(self, target: str, body: bytes, headers: dict[str, str]) -> None:
        """A POST whose answer is not read, because the connection breaks after it."""
        connection = http.client.HTTPConnection(self._address, timeout=PATIENCE)
        connection.request("POST", target, body, {**self._headers, **headers})
        connection.close()

    def open(self, target: str) -> Download:
        with self._taking:
            last, self._downloading = self._downloading, None
        if last is not None and last.ended_well:
            connection = last.connection
            _forget_closed(connection)
        else:
            connection = http.client.HTTPConnection(self._address, timeout=SILENCE_SECONDS)
        try:
            self._downloading = download = _Http1Download(connection, target, self._headers)
            return download
        except (http.client.HTTPException, OSError) as error:
            connection.close()
            raise ConnectionError(repr(error)) from error

    def close(self) -> None:
        self._connection.close()
        if self._downloading is not None and self._downloading.ended_well:
            self._downloading.connection.close()
