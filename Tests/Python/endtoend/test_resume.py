"""Listen targets that resume where an earlier stream ended."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

from support.program import BINARY, EFFORT, Program, program
from support.streams import Listen

DESCENDING = 2

pytestmark = pytest.mark.emulator_differs("it sends every resumed target anew")


@pytest.fixture
def listen(channel: grpc.Channel, project: str) -> Iterator[Listen]:
    stream = Listen(channel, project)
    yield stream
    stream.cancel()


def fill(db: firestore.Client, **documents: int | None) -> None:
    batch = db.batch()
    for name, number in documents.items():
        reference = db.document("c", name)
        batch.delete(reference) if number is None else batch.set(reference, {"n": number})
    batch.commit()


def interrupted(listen: Listen, *target: Any, **more: Any) -> bytes:
    """Loads target 2 and removes it: the token includes that."""
    listen.add_query(2, *target, **more)
    listen.snapshot()
    listen.remove(2)
    assert listen.next() == ("REMOVE", [2])
    return listen.token


def test_only_what_changed_is_sent(db: firestore.Client, listen: Listen) -> None:
    fill(db, a=1, b=2, d=3, e=4, f=5)
    token = interrupted(listen, "c", where=[("n", 3, 0)])
    fill(db, a=7, b=None, d=-1, g=8)
    fill(db, a=9, h=1)
    fill(db, h=None)
    db.document("other/a").set({"n": 1})
    listen.add_query(2, "c", where=[("n", 3, 0)], resume_token=token)
    assert listen.snapshot() == [
        ("ADD", [2]),
        ("change", "c/a", 9, [2], []),
        ("delete", "c/b", [2]),
        ("change", "c/d", -1, [], [2]),
        ("change", "c/g", 8, [2], []),
        ("CURRENT", [2]),
    ]
    # And it is a normal target from then on.
    fill(db, a=10)
    assert listen.snapshot() == [("change", "c/a", 10, [2], [])]


def test_nothing_changed(db: firestore.Client, listen: Listen) -> None:
    fill(db, a=1)
    listen.add_query(2, "c", resume_token=interrupted(listen, "c"))
    assert listen.snapshot() == [("ADD", [2]), ("CURRENT", [2])]


def test_from_the_time_before_the_first_commit(db: firestore.Client, listen: Listen) -> None:
    token = interrupted(listen, "c")
    fill(db, a=1)
    listen.add_query(2, "c", resume_token=token)
    assert listen.snapshot() == [("ADD", [2]), ("change", "c/a", 1, [2], []), ("CURRENT", [2])]


def test_a_window(db: firestore.Client, listen: Listen) -> None:
    fill(db, a=1, b=2, d=3, e=4)
    query: dict[str, Any] = dict(order=[("n", DESCENDING)], limit=2)
    token = interrupted(listen, "c", **query)
    fill(db, d=None, a=9)
    listen.add_query(2, "c", resume_token=token, **query)
    assert listen.snapshot() == [
        ("ADD", [2]),
        ("change", "c/a", 9, [2], []),
        ("delete", "c/d", [2]),
        ("CURRENT", [2]),
    ]
    fill(db, a=None)
    assert sorted(listen.snapshot()) == [("change", "c/b", 2, [2], []), ("delete", "c/a", [2])]


def test_documents(db: firestore.Client, listen: Listen) -> None:
    fill(db, a=1, b=2, d=3)
    paths = ["c/a", "c/b", "c/d", "c/never", "c/new"]
    listen.add_documents(2, *paths)
    listen.snapshot()
    listen.remove(2)
    listen.next()
    fill(db, a=5, b=None, new=1)
    listen.add_documents(2, *paths, resume_token=listen.token)
    assert listen.snapshot() == [
        ("ADD", [2]),
        ("change", "c/a", 5, [2], []),
        ("delete", "c/b", [2]),
        ("delete", "c/never", [2]),
        ("change", "c/new", 1, [2], []),
        ("CURRENT", [2]),
    ]


def test_from_a_read_time(db: firestore.Client, listen: Listen) -> None:
    fill(db, a=1, b=2)
    known = db.collection("c").get()[0].read_time
    fill(db, b=3)
    listen.add_query(2, "c", read_time=known.timestamp_pb().ToNanoseconds())
    assert listen.snapshot() == [("ADD", [2]), ("change", "c/b", 3, [2], []), ("CURRENT", [2])]


def test_from_a_read_time_to_come(listen: Listen) -> None:
    listen.add_query(2, "c", read_time=4_000_000_000 * 10**9)
    answer = listen.next()
    assert answer[:3] == ("REMOVE", [2], grpc.StatusCode.INVALID_ARGUMENT.value[0])


def test_from_a_read_time_long_ago(db: firestore.Client, listen: Listen) -> None:
    # The whole history is within the retention time.
    fill(db, a=1)
    listen.add_query(2, "c", read_time=10**18)
    assert listen.snapshot() == [("ADD", [2]), ("change", "c/a", 1, [2], []), ("CURRENT", [2])]


RESET = [("ADD", [2]), ("RESET", [2]), ("change", "c/a", 1, [2], []), ("CURRENT", [2])]


@pytest.mark.parametrize("token", [b"x", b"\0" * 15 + b"\1", b"\xff" * 16, b"y" * 1000])
def test_a_token_that_is_none_of_ours(db: firestore.Client, listen: Listen, token: bytes) -> None:
    fill(db, a=1)
    listen.add_query(2, "c", resume_token=token)
    assert listen.snapshot() == RESET


def test_the_token_of_another_database(db: firestore.Client, listen: Listen, channel: grpc.Channel) -> None:
    fill(db, a=1)
    other = Listen(channel, f"{db.project}-2")
    fill(firestore.Client(project=f"{db.project}-2", credentials=AnonymousCredentials()), b=1)
    token = interrupted(other, "c")
    other.cancel()
    listen.add_query(2, "c", resume_token=token)
    assert listen.snapshot() == RESET


def test_after_clearing(rest: Any, project: str, db: firestore.Client, listen: Listen) -> None:
    fill(db, a=1, b=2)
    token = interrupted(listen, "c")
    rest.connection.request("DELETE", f"/emulator/v1/projects/{project}/databases/(default)/documents")
    assert rest.connection.getresponse().read() is not None
    fill(db, a=1)
    listen.add_query(2, "c", resume_token=token)
    assert listen.snapshot() == RESET


@pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")
def test_over_a_restart(tmp_path: Path) -> None:
    root = "/v1/projects/p/databases/(default)/documents/c/"

    def put(server: Program, name: str, number: int) -> None:
        assert server.send("PATCH", root + name, {"fields": {"n": {"integerValue": str(number)}}})[0] == 200

    with program(tmp_path) as server, grpc.insecure_channel(server.address) as channel:
        put(server, "a", 1)
        put(server, "b", 2)
        token = interrupted(Listen(channel, "p"), "c")
        put(server, "b", 3)
    with program(tmp_path) as server, grpc.insecure_channel(server.address) as channel:
        listen = Listen(channel, "p")
        listen.add_query(2, "c", resume_token=token)
        assert listen.snapshot() == [("ADD", [2]), ("change", "c/b", 3, [2], []), ("CURRENT", [2])]


# Existence filters


def contains(filter_: Any, name: str) -> bool:
    """A name lookup, as in the SDKs."""
    bits = filter_.bits.bitmap
    size = len(bits) * 8 - filter_.bits.padding
    digest = hashlib.md5(name.encode()).digest()
    first, second = (int.from_bytes(half, "little") for half in (digest[:8], digest[8:]))
    places = ((first + i * second) % 2**64 % size for i in range(filter_.hash_count))
    return all(bits[place // 8] >> place % 8 & 1 for place in places)


def filter_of(messages: list[tuple[Any, ...]]) -> Any:
    (found,) = (message[1] for message in messages if message[0] == "filter")
    return found


def test_a_client_that_has_what_it_should(db: firestore.Client, listen: Listen) -> None:
    fill(db, a=1, b=2, d=3)
    token = interrupted(listen, "c")
    fill(db, a=None, e=1, f=1)
    listen.add_query(2, "c", resume_token=token, expected_count=3)
    messages = listen.snapshot()
    found = filter_of(messages)
    assert (found.target_id, found.count, found.HasField("unchanged_names")) == (2, 4, False)
    assert [message[0] for message in messages] == ["ADD", "delete", "change", "change", "filter", "CURRENT"]


@pytest.mark.parametrize("window", [{}, {"order": [("n", DESCENDING)], "limit": 200}])
def test_a_client_that_has_not_what_it_should(
    db: firestore.Client, listen: Listen, window: dict[str, Any]
) -> None:
    names = [f"{'ä' if i % 2 else '😀'}{i}" for i in range(300)]
    fill(db, **dict.fromkeys(names, 1))
    token = interrupted(listen, "c", **window)
    fill(db, **dict.fromkeys(names[:10], None))
    listen.add_query(2, "c", resume_token=token, expected_count=333, **window)
    found = filter_of(listen.snapshot())
    count = window.get("limit", 290)
    assert found.count == count
    kept = [name for name in names[10:] if contains(found.unchanged_names, f"{listen.root}/c/{name}")]
    # Every document that still exists; of the others a Bloom filter may contain one by chance.
    assert count <= len(kept) <= count + 2
    assert sum(contains(found.unchanged_names, f"{listen.root}/c/other{i}") for i in range(300)) <= 3


def test_the_read_time_of_the_next_stream_is_not_earlier(
    db: firestore.Client, channel: grpc.Channel, project: str
) -> None:
    """SDKs ignore a snapshot whose time is before that of their last one. A stream is loaded at a version after which a
    commit may already be visible."""
    streams = 500 * EFFORT
    has_ended = threading.Event()

    def write() -> None:
        chance = random.Random(1)
        while not has_ended.wait(chance.random() * 0.006):
            db.document("other/d").set({"n": 1, "r": chance.random()})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        read_time, more = 0, {}
        for number in range(streams):
            listen = Listen(channel, project)
            listen.add_documents(1, "c/d", **more)
            listen.snapshot()
            assert listen.read_time >= read_time, f"on stream {number}"
            read_time, more = listen.read_time, {"resume_token": listen.token}
            listen.cancel()
    finally:
        has_ended.set()
        writer.join()


def test_no_filter_for_those_who_do_not_ask(db: firestore.Client, listen: Listen) -> None:
    fill(db, a=1)
    listen.add_query(2, "c", resume_token=interrupted(listen, "c"))
    assert not [message for message in listen.snapshot() if message[0] == "filter"]


def test_an_empty_filter(db: firestore.Client, listen: Listen) -> None:
    fill(db, a=1)
    token = interrupted(listen, "c")
    fill(db, a=None)
    listen.add_query(2, "c", resume_token=token, expected_count=5)
    found = filter_of(listen.snapshot())
    assert (found.count, found.HasField("unchanged_names")) == (0, False)
