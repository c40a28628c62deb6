"""All resources that one client can make a server hold, at the same time: `everything`, an attack like those of
`support.attacks`.

Each part alone stays below a bound of its own; together they are limited by the bound above them.
"""

from __future__ import annotations

import http.client
import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from urllib.parse import quote

import grpc

from support import attacks, hostile
from support.attacks import ROOT, Attacker, _field

SECONDS = 11.0
LISTEN = "/google.firestore.v1.Firestore/Listen"
LISTEN_CHANNEL = f"{LISTEN}/channel?VER=8&RID=1&CVER=22"
DATABASE = ROOT.removesuffix("/documents")
FORM = {"Content-Type": attacks.FORM}


def _varint(value: int) -> bytes:
    made = b""
    while value > 0x7F:
        made += bytes([value & 0x7F | 0x80])
        value >>= 7
    return made + bytes([value])


def _query(collection: str, number: int = 1, more: bytes = b"") -> bytes:
    """A message that adds a target of this number: a query of a collection."""
    structured = _field(2, _field(2, collection.encode())) + more
    target = _field(2, _field(1, ROOT.encode()) + _field(2, structured)) + b"\x28" + _varint(number)
    return _field(1, DATABASE.encode()) + _field(2, target)


def _large_filter(number: int) -> bytes:
    """`a IN [20 strings of 1,400 bytes]`, different ones for each number."""
    values = (b"%6d-%2d-" % (number, each) + b"x" * 1390 for each in range(20))
    texts = b"".join(_field(1, b"\x8a\x01" + _varint(len(value)) + value) for value in values)
    condition = _field(1, _field(2, b"a")) + b"\x10\x08" + _field(3, _field(9, texts))
    return _field(3, _field(2, condition))


def listening(attacker: Attacker, until: float) -> None:
    """Targets with large filters, 128 MB of them."""

    def one(connection: int) -> None:
        waiting: queue.Queue[None] = queue.Queue()

        def requests() -> Iterator[bytes]:
            for number in range(250):
                yield _query("none", number + 1, _large_filter(connection * 1000 + number))
            waiting.get()

        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(f"127.0.0.1:{attacker.port}", options=options) as channel:
            call = channel.stream_stream(LISTEN)(requests())
            threading.Timer(until - time.monotonic(), call.cancel).start()
            try:
                for _ in call:
                    attacker.note("told of targets")
            except grpc.RpcError as error:
                attacker.note(error.code().name)
            waiting.put(None)

    attacker.many(16, one)


def untold(attacker: Attacker, until: float) -> None:
    """Streams that read nothing, while their targets change: 3.6 MB each."""
    document = b'{"fields":{"t":{"stringValue":"' + b"y" * 900_000 + b'"}}}'

    def one(number: int) -> None:
        peer = hostile.Peer(attacker.port)
        attacker.keep.append(peer.socket)
        asked = b"\0" + len(message := _query(f"u{number}")).to_bytes(4, "big") + message
        peer.push(hostile.PREFACE + hostile.settings(s4=0) + hostile.call(1, "Listen") + hostile.data(1, asked))
        time.sleep(1)
        for each in range(4):
            attacker.send("PATCH", f"/v1/{ROOT}/u{number}/d{each}", document)

    attacker.many(30, one)


def reading(attacker: Attacker, until: float) -> None:
    """Transactions that read 20,000 names of 240 bytes."""

    def one(number: int) -> None:
        begun = attacker.send("POST", f"/v1/{ROOT}:beginTransaction", {})
        names = [f"{ROOT}/none/{number}-{each}-{'z' * 200}" for each in range(20_000)]
        body = {"documents": names, "transaction": json.loads(begun)["transaction"]}
        attacker.send("POST", f"/v1/{ROOT}:batchGet", body)

    attacker.many(8, one)


def unacknowledged(attacker: Attacker, until: float) -> None:
    """Sessions of WebChannel that fetch nothing of their targets' data."""
    target = {"database": DATABASE, "addTarget": {"targetId": 2, "query": {
        "parent": ROOT, "structuredQuery": {"from": [{"collectionId": "c"}], "limit": 13}}}}
    body = "count=1&ofs=0&req0___data__=" + quote(json.dumps(target))

    def one(_: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", attacker.port, timeout=20)
        for _ in range(100):
            connection.request("POST", LISTEN_CHANNEL, body, FORM)
            answer = connection.getresponse()
            answer.read()
            attacker.note(answer.status)

    attacker.many(4, one)


def unread(attacker: Attacker, until: float) -> None:
    """Sockets of the Realtime Database with answers of 60 KB, which wait in memory."""
    attacker.send("PUT", attacks.database("middling"), "x" * 60_000)

    def one(_: int) -> None:
        made = attacks.open_socket(attacker, 4096)
        for number in range(20):
            made.sendall(attacks.text_frame(attacks.message(number + 1, "g", "middling")))

    attacker.many(60, one)


def committing(attacker: Attacker, until: float) -> None:
    """Commits that decode to 100 MB, and smaller ones that wait for the writers of many databases."""
    large = attacks._commit_of_nulls_as_json(500_000)
    nulls = _field(2, _field(1, b"v") + _field(2, _field(9, _field(1, b"\x58\0") * 31_000)))

    def again(_: int) -> None:
        while time.monotonic() < until:
            attacker.send("POST", f"/v1/{ROOT}:commit", large)

    def one(connection: int) -> None:
        database = f"projects/abuse/databases/many{connection}"
        with grpc.insecure_channel(
            f"127.0.0.1:{attacker.port}", options=[("grpc.use_local_subchannel_pool", 1)]
        ) as channel:
            commit = channel.unary_unary("/google.firestore.v1.Firestore/Commit")
            while time.monotonic() < until:
                documents = (f"{database}/documents/c/{number}".encode() for number in range(40))
                calls = [
                    commit.future(_field(1, database.encode()) + _field(2, _field(1, _field(1, name) + nulls)), timeout=20)
                    for name in documents
                ]
                for call in calls:
                    attacker.note("OK" if call.exception() is None else call.exception().code().name)

    attacker.many(10, lambda number: again(number) if number < 4 else one(number))


def closed_windows(attacker: Attacker) -> None:
    """The same as alone, where the server may be too busy to begin all of it in time."""
    query = _field(1, ROOT.encode()) + _field(2, _field(2, _field(2, b"c")))

    def one(_: int) -> None:
        peer = hostile.Peer(attacker.port)
        attacker.keep.append(peer.socket)
        calls = b"".join(hostile.call(2 * number + 1, "RunQuery", query) for number in range(100))
        peer.push(hostile.PREFACE + hostile.settings(s4=0) + calls)

    attacker.many(16, one)


def once(attack: Callable[[Attacker], None]) -> Callable[[Attacker, float], None]:
    return lambda attacker, until: attack(attacker)


PARTS: list[Callable[[Attacker, float], None]] = [
    listening,
    untold,
    reading,
    unacknowledged,
    unread,
    committing,
    once(attacks.unfinished_bodies),
    once(closed_windows),
    once(attacks.streams_with_large_heads),
    once(attacks.large_batches),
    once(attacks.slow_sorted_readers),
    # Not an array, see "What isn't held" in docs/reference/abuse.md.
    once(lambda attacker: attacks.slow_readers_of_much(attacker, "p")),
]


def everything(attacker: Attacker) -> None:
    until = time.monotonic() + SECONDS
    attacker.many(len(PARTS), lambda number: PARTS[number](attacker, until))
