"""Listen streams: message by message, and as Google's client sees them."""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.cloud import firestore

from support.patience import PATIENCE
from support.program import BINARY, Program, program
from support.streams import Listen, ListenRequest, Stream, WriteRequest
from support.webchannel import WebListen

EQUAL, GREATER = 5, 3
ASCENDING, DESCENDING = 1, 2

pytestmark = pytest.mark.emulator_differs("it answers every change with RESET and the whole result")


@pytest.fixture(params=["grpc", "webchannel", "polls"])
def listen(request: pytest.FixtureRequest, channel: grpc.Channel, address: str, project: str) -> Iterator[Any]:
    """The content of a stream is the same on every transport."""
    if request.param == "grpc":
        stream: Any = Listen(channel, project)
    else:
        stream = WebListen(address, project, polls=request.param == "polls")
    yield stream
    stream.cancel()


def fill(db: firestore.Client, **documents: int) -> None:
    batch = db.batch()
    for name, number in documents.items():
        batch.set(db.document("c", name), {"n": number, "g": number % 2})
    batch.commit()


# A fresh target


def test_an_empty_result(listen: Listen) -> None:
    listen.add_query(2, "c")
    assert listen.snapshot() == [("ADD", [2]), ("CURRENT", [2])]
    assert listen.is_silent()


def test_documents_in_the_order_of_the_query(db: firestore.Client, listen: Listen) -> None:
    fill(db, a=3, b=1, d=2)
    listen.add_query(2, "c", order=[("n", DESCENDING)])
    assert listen.snapshot() == [
        ("ADD", [2]),
        ("change", "c/a", 3, [2], []),
        ("change", "c/d", 2, [2], []),
        ("change", "c/b", 1, [2], []),
        ("CURRENT", [2]),
    ]


def test_documents_that_are_there_and_not(db: firestore.Client, listen: Listen) -> None:
    fill(db, a=1)
    listen.add_documents(1, "c/b", "c/a", "c/a")
    assert listen.snapshot() == [("ADD", [1]), ("change", "c/a", 1, [1], []), ("delete", "c/b", [1]), ("CURRENT", [1])]


def test_once_ends_after_the_first_snapshot(db: firestore.Client, listen: Listen) -> None:
    fill(db, a=1)
    listen.add_query(2, "c", once=True)
    assert listen.snapshot() == [("ADD", [2]), ("change", "c/a", 1, [2], []), ("CURRENT", [2])]
    assert listen.next() == ("REMOVE", [2])
    fill(db, b=1)
    assert listen.is_silent()


def test_a_large_result(db: firestore.Client, listen: Listen) -> None:
    for part in range(3):
        fill(db, **{f"d{part}x{number}": number for number in range(500)})
    listen.add_query(2, "c")
    snapshot = listen.snapshot()
    assert len(snapshot) == 1502 and snapshot[-1] == ("CURRENT", [2])


# Changes


def test_what_a_commit_changes_comes_in_one_snapshot(db: firestore.Client, listen: Listen) -> None:
    fill(db, a=1, b=2, d=3)
    listen.add_query(2, "c", where=[("n", GREATER, 1)])
    listen.snapshot()
    batch = db.batch()
    batch.update(db.document("c/a"), {"n": 5})  # enters
    batch.update(db.document("c/b"), {"n": 0})  # leaves, but exists
    batch.delete(db.document("c/d"))  # is deleted
    batch.set(db.document("c/e"), {"n": 9})  # is created
    batch.set(db.document("c/f"), {"n": 0})  # does not match
    batch.set(db.document("other/f"), {"n": 7})  # does not concern the target
    batch.commit()
    assert sorted(listen.snapshot()) == [
        ("change", "c/a", 5, [2], []),
        ("change", "c/b", 0, [], [2]),
        ("change", "c/e", 9, [2], []),
        ("delete", "c/d", [2]),
    ]
    assert listen.is_silent()


def test_what_comes_and_goes_at_once_is_told(db: firestore.Client, channel: grpc.Channel, project: str) -> None:
    """The writer's own write is visible to it until the server's confirmation, also when both commits are in one
    snapshot.
    """
    listen = Listen(channel, project, is_paused=True)
    listen.add_query(2, "c")
    time.sleep(0.2)
    # More than is sent to a client that does not read: later data is stored.
    for number in range(6):
        db.document("c", f"large{number}").set({"n": number, "text": "x" * 900_000})
    names = [f"d{number}" for number in range(10)]
    for name in names:
        db.document("c", name).set({"n": 1})
    for name in names:
        db.document("c", name).delete()
    db.document("c/last").set({"n": 1})
    listen.resume()
    told: list[Any] = []
    while not any(message[1] == "c/last" for message in told):
        told += listen.snapshot()
    came = [message[1] for message in told if message[0] == "change" and message[1].startswith("c/d")]
    gone = [message[1] for message in told if message[0] == "delete"]
    assert came == [] and gone == [f"c/{name}" for name in names]
    listen.cancel()


def test_what_changes_nothing_is_not_told(db: firestore.Client, listen: Listen) -> None:
    fill(db, a=1)
    listen.add_query(2, "c", where=[("n", GREATER, 0)])
    listen.snapshot()
    fill(db, a=1)  # unchanged
    db.document("c/z").delete()
    fill(db, x=-1)
    db.document("c/x").update({"n": -2})
    db.document("c/x").delete()
    assert listen.is_silent()


def test_a_document_of_several_targets(db: firestore.Client, listen: Listen) -> None:
    listen.add_query(2, "c")
    listen.add_query(4, "c", where=[("n", GREATER, 5)])
    listen.add_documents(5, "c/a")
    # Targets that are added together may share a boundary.
    loaded: list[Any] = []
    while ("CURRENT", [5]) not in loaded:
        loaded += listen.snapshot()
    assert loaded == [
        ("ADD", [2]),
        ("CURRENT", [2]),
        ("ADD", [4]),
        ("CURRENT", [4]),
        ("ADD", [5]),
        ("delete", "c/a", [5]),
        ("CURRENT", [5]),
    ]
    fill(db, a=9)
    assert listen.snapshot() == [("change", "c/a", 9, [2, 4, 5], [])]
    fill(db, a=1)
    assert listen.snapshot() == [("change", "c/a", 1, [2, 5], [4])]
    listen.remove(2)
    assert listen.next() == ("REMOVE", [2])
    db.document("c/a").delete()
    assert listen.snapshot() == [("delete", "c/a", [5])]


def test_a_window_is_refilled(db: firestore.Client, listen: Listen) -> None:
    fill(db, a=1, b=2, d=3, e=4)
    listen.add_query(2, "c", order=[("n", ASCENDING)], limit=2)
    assert [m[1] for m in listen.snapshot() if m[0] == "change"] == ["c/a", "c/b"]
    db.document("c/a").delete()
    assert sorted(listen.snapshot()) == [("change", "c/d", 3, [2], []), ("delete", "c/a", [2])]
    fill(db, x=0)
    assert sorted(listen.snapshot()) == [("change", "c/d", 3, [], [2]), ("change", "c/x", 0, [2], [])]
    fill(db, y=100)
    db.document("c/e").update({"n": 50})
    assert listen.is_silent()
    fill(db, b=60)
    assert sorted(listen.snapshot()) == [("change", "c/b", 60, [], [2]), ("change", "c/d", 3, [2], [])]


def test_collection_groups(db: firestore.Client, listen: Listen) -> None:
    db.document("a/1/c/x").set({"n": 1})
    listen.add_query(2, "c", group=True)
    assert listen.snapshot() == [("ADD", [2]), ("change", "a/1/c/x", 1, [2], []), ("CURRENT", [2])]
    fill(db, y=2)
    assert listen.snapshot() == [("change", "c/y", 2, [2], [])]
    db.document("a/1/d/x").set({"n": 1})
    assert listen.is_silent()


def test_clearing_sends_all_anew(rest: Any, project: str, db: firestore.Client, listen: Listen) -> None:
    fill(db, a=1)
    listen.add_query(2, "c")
    listen.snapshot()
    rest.connection.request("DELETE", f"/emulator/v1/projects/{project}/databases/(default)/documents")
    assert rest.connection.getresponse().read() is not None
    assert listen.snapshot() == [("RESET", [2]), ("CURRENT", [2])]


# Requests that are wrong


def test_errors_of_a_target_leave_the_others(db: firestore.Client, listen: Listen) -> None:
    listen.add_query(2, "c")
    listen.snapshot()
    listen.add_query(2, "d")
    assert listen.next()[:3] == ("REMOVE", [2], grpc.StatusCode.ALREADY_EXISTS.value[0])
    listen.add_query(4, "a/b")
    assert listen.next()[:3] == ("REMOVE", [4], grpc.StatusCode.INVALID_ARGUMENT.value[0])
    listen.add_documents(6, "c")
    assert listen.next()[:3] == ("REMOVE", [6], grpc.StatusCode.INVALID_ARGUMENT.value[0])
    listen.remove(77)
    assert listen.next() == ("REMOVE", [77])
    fill(db, a=1)
    assert listen.snapshot() == [("change", "c/a", 1, [2], [])]


@pytest.mark.parametrize(
    "request_",
    [
        ListenRequest(remove_target=1),
        ListenRequest(database="projects/p/databases/(default)"),
        ListenRequest(database="nonsense", remove_target=1),
        ListenRequest(database="projects/p/databases/(default)", add_target={"target_id": -1}),
    ],
)
def test_requests_that_end_the_stream(listen: Listen, request_: Any) -> None:
    listen.send(request_)
    with pytest.raises(grpc.RpcError) as caught:
        listen.take()
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_ids_are_assigned(listen: Listen) -> None:
    listen.add_query(0, "c")
    listen.add_query(0, "d")
    assert listen.snapshot()[0] == ("ADD", [1])
    assert listen.snapshot()[0] == ("ADD", [2])


def test_half_closing_ends_well(listen: Listen) -> None:
    listen.add_query(2, "c")
    listen.snapshot()
    listen.half_close()
    assert listen.next() is None


@pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")
def test_a_missing_index_costs_its_target_alone(tmp_path: Path) -> None:
    with program(tmp_path, "--require-indexes") as server, grpc.insecure_channel(server.address) as channel:
        listen = Listen(channel, "p")
        # Both are sent before the first is answered.
        listen.add_query(2, "c", where=[("a", EQUAL, 1)], order=[("n", ASCENDING)])
        listen.add_query(4, "c")
        assert listen.next() == ("ADD", [2])
        assert listen.next()[:3] == ("REMOVE", [2], grpc.StatusCode.FAILED_PRECONDITION.value[0])
        assert listen.snapshot() == [("ADD", [4]), ("CURRENT", [4])]
        listen.cancel()


@pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")
def test_a_shutdown_ends_open_streams_at_once(tmp_path: Path) -> None:
    # If it waited for them, it would end too late.
    server = Program(tmp_path, "--grace", str(2 * PATIENCE))
    with grpc.insecure_channel(server.address) as channel:
        listen, write = Listen(channel, "p"), Stream(channel, "Write")
        listen.add_query(2, "c")
        listen.snapshot()
        write.send(WriteRequest(database=listen.database))
        assert write.take().stream_token
        server.process.send_signal(signal.SIGTERM)
        for stream in (listen, write):
            with pytest.raises(grpc.RpcError) as caught:
                stream.take()
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            assert caught.value.details() == "The server is shutting down."
        assert server.end()[0] == 0


def test_a_client_that_pauses_gets_the_state_at_which_its_load_began(
    address: str, db: firestore.Client, project: str
) -> None:
    """A load releases its snapshot while the client does not read, and continues from the history."""
    # Otherwise the library may read the whole load ahead: it widens its windows by the measured bandwidth.
    channel = grpc.insecure_channel(address, options=[("grpc.http2.bdp_probe", 0)])
    text = "x" * 2000
    names = [f"d{number:04}" for number in range(3000)]
    for start in range(0, len(names), 500):
        batch = db.batch()
        for name in names[start : start + 500]:
            batch.set(db.document("c", name), {"n": 1, "text": text})
        batch.commit()
    listen = Listen(channel, project, is_paused=True)
    listen.add_query(2, "c")
    time.sleep(0.5)
    for number in range(0, 3000, 300):
        db.document("c", names[number]).set({"n": 2})
        db.document("c", names[number + 1]).delete()
    # Longer than the server's timeout.
    time.sleep(2)
    listen.resume()
    first = listen.snapshot()
    assert [message[1:3] for message in first if message[0] == "change"] == [(f"c/{name}", 1) for name in names]
    changes = listen.snapshot()
    assert sorted(message[0] for message in changes) == ["change"] * 10 + ["delete"] * 10
    assert {message[2] for message in changes if message[0] == "change"} == {2}
    listen.cancel()
    channel.close()


# Google's client


def test_on_snapshot_of_a_query(db: firestore.Client) -> None:
    seen: queue.Queue[Any] = queue.Queue()
    watch = db.collection("c").where(filter=firestore.FieldFilter("n", ">", 1)).on_snapshot(
        lambda documents, changes, _: seen.put(
            ({d.id: d.get("n") for d in documents}, [(c.type.name, c.document.id) for c in changes])
        )
    )
    try:
        assert seen.get(timeout=PATIENCE) == ({}, [])
        fill(db, a=1, b=2, d=3)
        documents, changes = seen.get(timeout=PATIENCE)
        assert documents == {"b": 2, "d": 3} and sorted(changes) == [("ADDED", "b"), ("ADDED", "d")]
        fill(db, a=7, b=0)
        documents, changes = seen.get(timeout=PATIENCE)
        assert documents == {"a": 7, "d": 3} and sorted(changes) == [("ADDED", "a"), ("REMOVED", "b")]
        db.document("c/d").update({"n": 4})
        assert seen.get(timeout=PATIENCE) == ({"a": 7, "d": 4}, [("MODIFIED", "d")])
    finally:
        watch.unsubscribe()


def test_on_snapshot_of_a_document(db: firestore.Client) -> None:
    seen: queue.Queue[Any] = queue.Queue()
    watch = db.document("c/a").on_snapshot(lambda documents, *_: seen.put([d.to_dict() for d in documents]))
    try:
        first = seen.get(timeout=PATIENCE)
        assert first in ([], [None])
        db.document("c/a").set({"n": 1})
        assert seen.get(timeout=PATIENCE) == [{"n": 1}]
        db.document("c/a").delete()
        assert seen.get(timeout=PATIENCE) in ([], [None])
    finally:
        watch.unsubscribe()


# Many


def test_every_snapshot_shows_whole_commits(
    channel: grpc.Channel, project: str, db: firestore.Client, listen: Listen
) -> None:
    """Writers move a sum between documents; no listener's snapshot contains a partial move."""
    fill(db, a=100, b=100, d=100, e=100)
    names = "abde"
    listen.add_query(2, "c")
    listen.add_query(4, "c", order=[("n", DESCENDING)], limit=5)
    states: dict[int, dict[str, int]] = {2: {}, 4: {}}
    failure: list[BaseException] = []

    def move(seed: int) -> None:
        try:
            for step in range(40):
                giver, taker = names[(seed + step) % 4], names[(seed + step * 3 + 1) % 4]
                if giver == taker:
                    continue
                batch = db.batch()
                batch.update(db.document("c", giver), {"n": firestore.Increment(-1)})
                batch.update(db.document("c", taker), {"n": firestore.Increment(1)})
                batch.commit()
        except BaseException as error:  # noqa: BLE001 - told to the test's thread
            failure.append(error)

    threads = [threading.Thread(target=move, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()

    def finish() -> None:
        for thread in threads:
            thread.join()
        db.document("c/z").set({"n": 0})

    finisher = threading.Thread(target=finish)
    finisher.start()
    loaded: set[int] = set()
    snapshots = 0
    while "c/z" not in states[2] or loaded != {2, 4}:
        snapshots += 1
        for message in listen.snapshot():
            if message[0] == "CURRENT":
                loaded.update(message[1])
            if message[0] == "change":
                for target in message[3]:
                    states[target][message[1]] = message[2]
                for target in message[4]:
                    del states[target][message[1]]
        for target in loaded:
            assert sum(states[target].values()) == 400, states
    finisher.join()
    assert not failure and snapshots > 10
    assert states[2] == states[4] == {f"c/{d.id}": d.get("n") for d in db.collection("c").get()}


# Windows, and many targets


def test_what_lies_behind_a_full_window(db: firestore.Client, listen: Listen) -> None:
    """A change after the last result is never sent; one that moves a document across the limit is."""
    fill(db, a=10, b=20, d=30, e=40)
    listen.add_query(2, "c", order=[("n", ASCENDING)], limit=2)
    listen.snapshot()
    # The first change determines the limit.
    fill(db, a=11)
    assert listen.snapshot() == [("change", "c/a", 11, [2], [])]
    fill(db, d=31, f=50)
    db.document("c/e").delete()
    assert listen.is_silent()
    fill(db, d=5)
    assert sorted(listen.snapshot()) == [("change", "c/b", 20, [], [2]), ("change", "c/d", 5, [2], [])]
    fill(db, b=21)
    assert listen.is_silent()
    db.document("c/a").delete()
    assert sorted(listen.snapshot()) == [("change", "c/b", 21, [2], []), ("delete", "c/a", [2])]
    # The next document moves to the limit, and the one at the limit moves after it.
    fill(db, f=12, b=60)
    assert sorted(listen.snapshot()) == [("change", "c/b", 60, [], [2]), ("change", "c/f", 12, [2], [])]
    for name in ("d", "f"):
        db.document(f"c/{name}").delete()
    seen = {}
    while seen != {"c/b": 60}:
        for message in listen.snapshot():
            if message[0] == "change":
                seen[message[1]] = message[2]
            elif message[0] == "delete":
                seen.pop(message[1], None)


def test_a_commit_that_many_targets_show_is_one_snapshot(db: firestore.Client, listen: Listen) -> None:
    """It is processed and sent in many ticks of the loop; no boundary precedes its completion."""
    count = 120
    for target in range(1, count + 1):
        listen.add_query(target, "c", where=[("n", GREATER, -target)])
    waiting = set(range(1, count + 1))
    while (message := listen.next()) != ("boundary",) or waiting:
        if message[0] == "CURRENT":
            waiting -= set(message[1])
    for number in range(3):
        fill(db, **{f"d{place}": 1000 * number + place for place in range(400)})
    told: dict[str, int] = {}
    while len(told) < 400 or min(told.values()) < 2000:
        numbers = set()
        for message in listen.snapshot():
            assert message[0] == "change" and message[3] == list(range(1, count + 1)) and message[4] == []
            told[message[1]] = message[2]
            numbers.add(message[2] // 1000)
        # Each commit writes all documents: a snapshot has all of them, of one version.
        assert len(told) == 400 and len(numbers) == 1
