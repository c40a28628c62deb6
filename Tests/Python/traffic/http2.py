"""Calls and requests on one connection of HTTP/2, whose windows, settings and bytes are in the hand of chance."""

from __future__ import annotations

import gzip
import json
import random
import select
import socket
import ssl
import struct
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import json_format
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    ResponseReceived,
    SettingsAcknowledged,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import FlowControlError, ProtocolError
from h2.settings import SettingCodes

from support.wire import METHODS
from traffic.content import content, letters, size
from traffic.served import Finding, Served

#: How long nothing may come although everything is read.
STALL_SECONDS = 30.0
#: The server gives up an answer of which nothing is read for a minute: a connection with a small buffer, on which much waits,
#: is left before. Both together are less than that minute.
CONNECTION_SECONDS = 15.0
DRAIN_SECONDS = 40.0
#: A head must come within 10 seconds, also where the machine is slow: then a connection moves more bytes at a time.
FEW_SECONDS = 3.0
DATABASE = "projects/demo/databases/(default)"
ROOT = f"{DATABASE}/documents"
#: Documents of a lane.
COUNT_MAX = 100


@dataclass
class Stream:
    """A request, and its answer as far as it has come."""

    what: str
    check: Callable[[Stream], None]
    body: bytes
    cancels_after: int | None = None
    ends_late: bool = False
    #: The body grows until `Lane._end`.
    stays_open: bool = False
    #: Called when bytes have come, and when the client has reset the stream or left its connection.
    arrived: Callable[[Stream], None] | None = None
    lost: Callable[[], None] | None = None
    head: dict[str, str] = field(default_factory=dict)
    trailers: dict[str, str] = field(default_factory=dict)
    came: bytearray = field(default_factory=bytearray)
    count: int = 0
    unconsumed: int = 0
    sent: int = 0

    def take_messages(self) -> list[bytes]:
        """Those that are whole."""
        found = []
        while len(self.came) >= 5:
            compressed, length = struct.unpack(">BI", self.came[:5])
            if len(self.came) < 5 + length:
                break
            message = bytes(self.came[5 : 5 + length])
            found.append(gzip.decompress(message) if compressed else message)
            del self.came[: 5 + length]
        return found

    def messages(self) -> list[bytes]:
        found = self.take_messages()
        if self.came:
            raise Finding(f"{self.what}: a message is cut after {len(self.came)} bytes")
        return found

    def status(self) -> int:
        return int(self.trailers.get("grpc-status", self.head.get("grpc-status", "-1")))


@dataclass
class Document:
    name: str
    size: int
    key: int


class Documents:
    """The documents of one connection: nobody else writes them, so that each answer is known."""

    def __init__(self, collection: str, chance: random.Random) -> None:
        self.collection = collection
        self.known: list[Document] = []
        self.chance = chance
        self._next = 0

    def new(self) -> Document:
        """What to write: once there are enough, one of them again, so that the server's data stays as large as it is."""
        if len(self.known) >= COUNT_MAX:
            return self.chance.choice(self.known)
        self._next += 1
        # Many of the same name length, so that the size of an answer depends on its content.
        name = f"{ROOT}/{self.collection}/d{self._next:06}"
        return Document(name, size(self.chance, 900 << 10), self._next)

    def add(self, document: Document) -> None:
        if document not in self.known:
            self.known.append(document)

    def write(self, document: Document) -> dict[str, Any]:
        data = content(document.key, document.size)
        return {"update": {"name": document.name, "fields": {"b": {"bytesValue": b64encode(data).decode()}}}}


class Lane:
    """One connection after another."""

    #: Open at a time.
    streams_max = 80

    def __init__(self, served: Served, seed: int, number: int) -> None:
        self.served = served
        self.chance = random.Random(f"{seed}/{number}/http2")
        self.documents = Documents(f"t{number}", self.chance)
        self.counts = {"whole": 0, "reset": 0, "left": 0, "connections": 0, "bytes": 0}
        self.number = number

    # One connection

    def run(self, until: float) -> None:
        self.until = until
        while not self._is_done():
            self._connect()
            begun = time.monotonic()
            steps = self.chance.randrange(30, 400) * (3 if self.is_solitary else 1)
            try:
                for _ in range(steps):
                    if time.monotonic() > min(until, begun + CONNECTION_SECONDS) and (self.streams or self.counts["whole"]):
                        break
                    self._act()
                    self._move()
                if self.chance.random() < 0.8 or time.monotonic() > until:
                    self._drain()
            finally:
                self.socket.close()
            for stream in self.streams.values():
                if stream.lost:
                    stream.lost()

    def _is_done(self) -> bool:
        return time.monotonic() > self.until and self.counts["whole"] > 0

    def _is_drained(self) -> bool:
        """Whether nothing is open. Called again and again at the end of a connection."""
        return not self.streams

    def _connect(self) -> None:
        self.counts["connections"] += 1
        raw = socket.create_connection(("127.0.0.1", self.served.port), timeout=20)
        if self.chance.random() < 0.3 and time.monotonic() < self.until:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.chance.choice([16_384, 32_768, 65_536]))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.served.secure:
            context = ssl._create_unverified_context()
            context.set_alpn_protocols(["h2"])
            raw = context.wrap_socket(raw, server_hostname="localhost")
        self.socket = raw
        self.socket.setblocking(False)
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        # One answer at a time, which fills the output of a flush alone.
        self.is_solitary = self.chance.random() < 0.4
        window = 8 << 20 if self.is_solitary else self.chance.choice([0, 0, 1, 100, 16_384, 65_535, 1 << 20, 8 << 20])
        self.h2.local_settings = type(self.h2.local_settings)(
            client=True, initial_values={SettingCodes.INITIAL_WINDOW_SIZE: window, SettingCodes.ENABLE_PUSH: 0}
        )
        self.h2.initiate_connection()
        if self.is_solitary or self.chance.random() < 0.7:
            self.h2.increment_flow_control_window(1 << 24)
        self.output = bytearray()
        self.streams: dict[int, Stream] = {}
        self.connection_unconsumed = 0
        self.paused = False
        self.hurries = False
        # h2 takes any acknowledgement for that of all settings: one frame at a time.
        self.unacknowledged = 1
        self.resets = 100
        self.controls = 500
        self.few_until = time.monotonic() + FEW_SECONDS
        self.pace = "all" if self.is_solitary else self.chance.choice(["all", "all", "any", "few"])

    def _act(self) -> None:
        if self.is_solitary:
            if not self.streams:
                self._begin()
            for number in list(self.streams):
                self._consume(number)
            self._consume_connection()
            return self._send_bodies()
        act = self.chance.random()
        if act < 0.25 and len(self.streams) < self.streams_max:
            for _ in range(self.chance.choice([1, 1, 1, 2, 5, 40])):
                if len(self.streams) < self.streams_max:
                    self._begin()
        elif act < 0.35 and self.streams:
            self._consume(self.chance.choice(list(self.streams)))
        elif act < 0.40 and self.controls > 0:
            self.controls -= 1
            self._control()
        elif act < 0.42 and self.streams and self.resets > 0:
            self.resets -= 1
            self._reset(self.chance.choice(list(self.streams)))
        elif act < 0.5:
            self.paused = not self.paused
        elif act < 0.6:
            for number in list(self.streams):
                self._consume(number)
        self._send_bodies()

    def _control(self) -> None:
        kind = self.chance.randrange(4)
        if kind == 0:
            self.h2.ping(self.chance.randbytes(8))
        elif kind == 1:
            self._set(SettingCodes.INITIAL_WINDOW_SIZE, self.chance.choice([0, 1, 16_384, 1 << 20, 4 << 20]))
        elif kind == 2:
            self._set(SettingCodes.MAX_FRAME_SIZE, self.chance.choice([16_384, 1 << 20]))
        else:
            self._set(SettingCodes.HEADER_TABLE_SIZE, self.chance.choice([0, 4_096]))

    def _set(self, code: SettingCodes, value: int) -> bool:
        if self.unacknowledged:
            return False
        self.unacknowledged = 1
        self.h2.update_settings({code: value})
        return True

    def _move(self) -> None:
        """Some bytes out, some in."""
        self.output += self.h2.data_to_send()
        if self.pace == "few" and time.monotonic() > self.few_until:
            self.pace = "any"
        limit = {"all": 1 << 20, "any": self.chance.randrange(1, 100_000), "few": self.chance.randrange(1, 9)}[self.pace]
        if self.hurries:
            limit = 1 << 20
        wants = [] if self.paused and not self.hurries else [self.socket]
        readable, writable, _ = select.select(wants, [self.socket] if self.output else [], [], 0.05 if self.hurries else 0.002)
        if writable:
            try:
                sent = self.socket.send(self.output[:limit])
                del self.output[:sent]
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass
        if readable or (self.served.secure and wants and self.socket.pending()):  # type: ignore[attr-defined]
            try:
                received = self.socket.recv(max(limit, 1_000 if self.pace == "few" else 1))
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            if not received:
                raise Finding(f"the connection ended with {[stream.what for stream in self.streams.values()][:5]}")
            self.counts["bytes"] += len(received)
            self.last_input = time.monotonic()
            for event in self.h2.receive_data(received):
                self._take(event)

    def _drain(self) -> None:
        """Everything must come now, whole."""
        self.hurries = True
        if time.monotonic() > self.until:
            # The run does not wait for a slow connection.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        is_open = False
        self.last_input = begun = time.monotonic()
        while not self._is_drained():
            if time.monotonic() > begun + DRAIN_SECONDS:
                self.counts["left"] += len(self.streams)
                return
            is_open = is_open or self._set(SettingCodes.INITIAL_WINDOW_SIZE, 4 << 20)
            for number in list(self.streams):
                self._consume(number)
            self._consume_connection()
            self._send_bodies()
            self._move()
            if time.monotonic() - self.last_input > STALL_SECONDS:
                raise Finding(f"stalled: {[(stream.what, len(stream.came)) for stream in self.streams.values()][:5]}")

    # Streams

    def _begin(self) -> None:
        kind = self.chance.random()
        if not self.documents.known or kind < 0.15:
            self._commit()
        elif kind < 0.5:
            self._get()
        elif kind < 0.6:
            self._batch_get()
        elif kind < 0.7:
            self._query()
        elif kind < 0.8:
            self._rest()
        else:
            self._refused()

    def _call(self, method: str, body: dict[str, Any], what: str, check: Callable[[Stream], None]) -> None:
        message = json_format.ParseDict(body, METHODS[method].request())
        self._open_call(METHODS[method].path, message, f"{method} {what}", check)

    def _open_call(self, path: str, message: Any, what: str, check: Callable[[Stream], None]) -> tuple[int, Stream]:
        fields = [("te", "trailers"), ("content-type", "application/grpc"), ("authorization", "Bearer owner")]
        compresses = self.chance.random() < 0.2
        if compresses:
            fields.append(("grpc-encoding", "gzip"))
        if self.chance.random() < 0.3:
            fields.append(("grpc-accept-encoding", "gzip"))
        return self._open("POST", path, fields, framed(message, compresses), what, check)

    def _open(
        self, method: str, path: str, fields: list[tuple[str, str]], body: bytes, what: str, check: Callable[[Stream], None]
    ) -> tuple[int, Stream]:
        number = self.h2.get_next_available_stream_id()
        scheme = "https" if self.served.secure else "http"
        head = [(":method", method), (":scheme", scheme), (":authority", "localhost"), (":path", path), *fields]
        # Some requests end late, with an empty frame. Where the answer comes before, a reset without an error follows it.
        ends = method == "POST" or self.chance.random() < 0.7
        self.h2.send_headers(number, head, end_stream=ends and not body)
        stream = self.streams[number] = Stream(what, check, body, ends_late=not ends and not body)
        if self.chance.random() < 0.08:
            stream.cancels_after = self.chance.randrange(1, 200_000)
        if self.chance.random() < 0.3:
            self.h2.increment_flow_control_window(self.chance.choice([1, 16_384, 1 << 20]), number)
        return number, stream

    def _end(self, stream: Stream) -> None:
        """The body of a stream that stays open has no more."""
        if stream.stays_open:
            stream.stays_open = False
            stream.ends_late = stream.sent == len(stream.body)

    def _send_bodies(self) -> None:
        for number, stream in list(self.streams.items()):
            if stream.ends_late and (self.hurries or self.is_solitary or self.chance.random() < 0.1):
                stream.ends_late = False
                self.h2.end_stream(number)
            while stream.sent < len(stream.body):
                room = min(self.h2.local_flow_control_window(number), self.h2.max_outbound_frame_size)
                if room <= 0 or len(self.output) > 1 << 20:
                    break
                if not self.hurries and self.chance.random() < 0.3:
                    room = self.chance.randrange(1, room + 1)
                piece = stream.body[stream.sent : stream.sent + room]
                stream.sent += len(piece)
                ends = stream.sent == len(stream.body) and not stream.stays_open
                self.h2.send_data(number, piece, end_stream=ends)

    def _consume(self, number: int) -> None:
        stream = self.streams.get(number)
        if stream is None or not stream.unconsumed:
            return
        count, stream.unconsumed = stream.unconsumed, 0
        try:
            self.h2.increment_flow_control_window(count, number)
        except (ProtocolError, FlowControlError, KeyError):
            pass  # The stream has ended on the wire.

    def _consume_connection(self) -> None:
        if self.connection_unconsumed:
            self.h2.increment_flow_control_window(self.connection_unconsumed)
            self.connection_unconsumed = 0

    def _reset(self, number: int) -> None:
        self.counts["reset"] += 1
        stream = self.streams.pop(number)
        if stream.lost:
            stream.lost()
        try:
            self.h2.reset_stream(number, ErrorCodes.CANCEL)
        except ProtocolError:
            pass  # It has ended on the wire.

    def _take(self, event: Any) -> None:
        stream = self.streams.get(getattr(event, "stream_id", 0) or 0)
        match event:
            case ResponseReceived() if stream:
                stream.head = dict(event.headers)
            case DataReceived():
                self.connection_unconsumed += event.flow_controlled_length
                if self.hurries or self.chance.random() < 0.5:
                    self._consume_connection()
                if stream:
                    stream.came += event.data
                    stream.count += len(event.data)
                    stream.unconsumed += event.flow_controlled_length
                    if stream.arrived:
                        stream.arrived(stream)
                    if stream.cancels_after is not None and stream.count >= stream.cancels_after and self.resets > 0:
                        self.resets -= 1
                        self._reset(event.stream_id)
            case TrailersReceived() if stream:
                stream.trailers = dict(event.headers)
            case StreamEnded() if stream:
                del self.streams[event.stream_id]
                stream.check(stream)
                self.counts["whole"] += 1
            case StreamReset() if stream:
                raise Finding(f"{stream.what}: reset by the server with {event.error_code}")
            case SettingsAcknowledged():
                self.unacknowledged = 0
            case ConnectionTerminated():
                raise Finding(f"GOAWAY {event.error_code} {event.additional_data!r}")

    # What is asked, and what must come

    def _commit(self) -> None:
        document = self.documents.new()

        def check(stream: Stream) -> None:
            self._succeeded(stream)
            self.documents.add(document)

        self._call("Commit", {"database": DATABASE, "writes": [self.documents.write(document)]}, document.name, check)

    def _succeeded(self, stream: Stream) -> list[bytes]:
        if stream.head.get(":status") != "200" or stream.status() != 0:
            raise Finding(f"{stream.what}: {stream.head} {stream.trailers}")
        return stream.messages()

    @staticmethod
    def _same(what: str, answer: Any, document: Document) -> None:
        data = answer.fields["b"].bytes_value
        wanted = content(document.key, document.size)
        if answer.name != document.name or data != wanted:
            at = next((i for i, (one, two) in enumerate(zip(data, wanted, strict=False)) if one != two), min(len(data), len(wanted)))
            raise Finding(f"{what}: {answer.name} with {len(data)} instead of {document.size} bytes, different from {at} on")

    def _get(self) -> None:
        document = self.chance.choice(self.documents.known)

        def check(stream: Stream) -> None:
            (message,) = self._succeeded(stream)
            self._same(stream.what, METHODS["GetDocument"].response.FromString(message), document)

        self._call("GetDocument", {"name": document.name}, document.name, check)

    def _batch_get(self) -> None:
        wanted = {document.name: document for document in self.chance.choices(self.documents.known, k=3)}

        def check(stream: Stream) -> None:
            found = [METHODS["BatchGetDocuments"].response.FromString(message) for message in self._succeeded(stream)]
            names = [answer.found.name for answer in found]
            if sorted(names) != sorted(wanted):
                raise Finding(f"{stream.what}: {names}")
            for answer in found:
                self._same(stream.what, answer.found, wanted[answer.found.name])

        self._call("BatchGetDocuments", {"database": DATABASE, "documents": list(wanted)}, str(len(wanted)), check)

    def _query(self) -> None:
        first = self.chance.choice(self.documents.known)
        at_least = [document for document in self.documents.known if document.name >= first.name][:4]
        count = len(at_least)

        def check(stream: Stream) -> None:
            answers = [METHODS["RunQuery"].response.FromString(message) for message in self._succeeded(stream)]
            found = [answer.document for answer in answers if answer.HasField("document")]
            known = {document.name: document for document in self.documents.known}
            names = [document.name for document in found]
            if len(found) < count or names != sorted(names) or names[0] != first.name:
                raise Finding(f"{stream.what}: {names}")
            for answer in found:
                # A document whose commit was reset may be there, or not.
                if answer.name in known:
                    self._same(stream.what, answer, known[answer.name])

        query = {
            "from": [{"collectionId": self.documents.collection}],
            "orderBy": [{"field": {"fieldPath": "__name__"}}],
            "startAt": {"values": [{"referenceValue": first.name}], "before": True},
            "limit": count,
        }
        self._call("RunQuery", {"parent": ROOT, "structuredQuery": query}, f"from {first.name}", check)

    def _rest(self) -> None:
        document = self.chance.choice(self.documents.known)
        compressed = self.chance.random() < 0.5

        def check(stream: Stream) -> None:
            body = bytes(stream.came)
            if stream.head.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            check_rest(stream.what, stream.head.get(":status", ""), body, document)

        fields = [("authorization", "Bearer owner")] + ([("accept-encoding", "gzip")] if compressed else [])
        self._open("GET", f"/v1/{document.name}", fields, b"", f"REST {document.name}", check)

    def _refused(self) -> None:
        """Long names in the answers' trailers or bodies."""
        name = letters(self.chance.randrange(1 << 20), self.chance.choice([1, 100, 600, 900, 1_400]))
        missing = f"{ROOT}/missing/{name}"

        def check(stream: Stream) -> None:
            if stream.status() != 5 or stream.came:
                raise Finding(f"{stream.what}: {stream.head} {stream.trailers}")

        def check_rest_error(stream: Stream) -> None:
            if stream.head.get(":status") != "404" or name not in json.loads(stream.came)["error"]["message"]:
                raise Finding(f"{stream.what}: {stream.head} {bytes(stream.came[:300])!r}")

        if self.chance.random() < 0.5:
            self._call("GetDocument", {"name": missing}, "of a missing document", check)
        else:
            self._open("GET", f"/v1/{missing}", [("authorization", "Bearer owner")], b"", "REST of a missing document", check_rest_error)


def framed(message: Any, compresses: bool) -> bytes:
    data = message.SerializeToString()
    if compresses:
        data = gzip.compress(data, 1)
    return struct.pack(">BI", compresses, len(data)) + data


def check_rest(what: str, status: str, body: bytes, document: Document) -> None:
    if status != "200":
        raise Finding(f"{what}: {status} {body[:300]!r}")
    answer = json.loads(body)
    data = b64decode(answer["fields"]["b"]["bytesValue"])
    if answer["name"] != document.name or data != content(document.key, document.size):
        raise Finding(f"{what}: other bytes: {len(data)} instead of {document.size}")
