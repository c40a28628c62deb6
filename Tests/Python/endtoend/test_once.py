"""Effects that happen exactly once: commits with an id, and the ledger, though requests are repeated and the server is
killed.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1.types import DocumentTransform, Write
from google.protobuf import json_format

from endtoend.rest import Rest
from support.patience import PATIENCE
from support.program import BINARY, EFFORT, Program, assert_sound
from support.streams import Stream, WriteRequest
from support.webchannel import WebWrite
from support.wire import METHODS, parse

COMMIT = METHODS["Commit"]
ROUNDS = 5 if EFFORT == 1 else 5 * EFFORT
WORKERS = 8
DATABASE = "projects/once/databases/(default)"


def increment(root: str, *documents: str) -> dict[str, Any]:
    """A commit that adds one to each document's `n`."""
    return {
        "writes": [
            {
                "update": {"name": f"{root}/{document}"},
                "updateMask": {},
                "updateTransforms": [{"fieldPath": "n", "increment": {"integerValue": "1"}}],
            }
            for document in documents
        ]
    }


def over_grpc(channel: grpc.Channel, database: str, body: dict[str, Any], *ids: str, timeout: float = PATIENCE) -> Any:
    call = channel.unary_unary(
        COMMIT.path,
        request_serializer=COMMIT.request.SerializeToString,
        response_deserializer=COMMIT.response.FromString,
    )
    head = [("authorization", "Bearer owner"), *(("x-hearth-once", name) for name in ids)]
    return call(parse(COMMIT, {"database": database, **body}), metadata=head, timeout=timeout)


@pytest.fixture(autouse=True)
def _is_hearth(request: pytest.FixtureRequest) -> None:
    if request.getfixturevalue("is_emulator"):
        pytest.skip("commits with an id are Hearth's own")


def test_a_repetition_is_answered_and_not_applied(channel: grpc.Channel, rest: Rest, db: firestore.Client) -> None:
    body = increment(rest.root, "c/a", "c/b")
    first = over_grpc(channel, rest.database, body, "event!~")
    assert over_grpc(channel, rest.database, body, "event!~") == first
    reply = rest.send("POST", f"/v1/{rest.root}:commit", body, {"x-hearth-once": "event!~"})
    assert reply.status == 200 and parse_commit(reply.json) == first
    assert db.document("c/a").get().to_dict() == {"n": 1}
    over_grpc(channel, rest.database, body, "other")
    over_grpc(channel, rest.database, body)
    assert db.document("c/b").get().to_dict() == {"n": 3}


def parse_commit(body: Any) -> Any:
    return json_format.ParseDict(body, COMMIT.response())


def test_concurrent_repetitions_apply_once(channel: grpc.Channel, rest: Rest, db: firestore.Client) -> None:
    body = increment(rest.root, "c/a")
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda n: over_grpc(channel, rest.database, body, f"e{n % 5}"), range(200)))
    assert len({answer.SerializeToString() for answer in answers}) == 5
    assert db.document("c/a").get().to_dict() == {"n": 5}


@pytest.mark.parametrize("bad", ["", "a b", "x" * 129])
def test_bad_ids(channel: grpc.Channel, rest: Rest, bad: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        over_grpc(channel, rest.database, increment(rest.root, "c/a"), bad)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "x-hearth-once" in caught.value.details()


def test_an_id_of_other_documents(channel: grpc.Channel, rest: Rest) -> None:
    over_grpc(channel, rest.database, increment(rest.root, "c/a"), "e")
    with pytest.raises(grpc.RpcError) as caught:
        over_grpc(channel, rest.database, increment(rest.root, "c/b"), "e")
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    reply = rest.send(
        "POST", f"/v1/{rest.root}:batchWrite", increment(rest.root, "c/a"), {"x-hearth-once": "e"}
    )
    assert reply.error()[:2] == (400, "INVALID_ARGUMENT") and "x-hearth-once" in reply.error()[2]
    assert rest.send("GET", f"/v1/{rest.root}/c/a", None, {"x-hearth-once": "e"}).status == 200


def test_the_recipes_of_the_guide(db: firestore.Client) -> None:
    """docs/guide/once.md"""

    def with_ledger(event_id: str) -> None:
        batch = db.batch()
        batch.create(db.document(f"_once/{event_id}"), {})
        batch.set(db.document("restaurants/r"), {"ratings": firestore.Increment(1)}, merge=True)
        try:
            batch.commit()
        except exceptions.AlreadyExists:
            pass

    def with_header(event_id: str) -> None:
        counted = DocumentTransform.FieldTransform(field_path="ratings", increment={"integer_value": 1})
        write = Write(
            transform=DocumentTransform(document=db.document("restaurants/r")._document_path, field_transforms=[counted])
        )
        db._firestore_api.commit(
            request={"database": db._database_string, "writes": [write]},
            metadata=[("x-hearth-once", event_id), *db._rpc_metadata],
        )

    for event in ["a", "b", "a", "a"]:
        with_ledger(event)
        with_header(event)
    assert db.document("restaurants/r").get().get("ratings") == 4


@pytest.fixture(params=["grpc", "webchannel"])
def opened(request: pytest.FixtureRequest, channel: grpc.Channel, address: str, project: str) -> Callable[[], Any]:
    """Opens a Write stream."""
    if request.param == "grpc":
        return lambda: Stream(channel, "Write")
    return lambda: WebWrite(address, project)


def resume(stream: Any, database: str, name: str = "", token: bytes = b"") -> Any:
    opening = WriteRequest(database=database, stream_id=name, stream_token=token)
    if not name:
        opening.labels["hearth-resumable"] = "true"
    stream.send(opening)
    return stream.take()


def add_one(stream: Any, root: str, token: bytes) -> Any:
    request = WriteRequest(stream_token=token)
    for write in parse(COMMIT, increment(root, "c/a")).writes:
        request.writes.add().CopyFrom(write)
    stream.send(request)
    return stream.take()


def test_a_write_stream_is_resumed(opened: Callable[[], Any], rest: Rest, db: firestore.Client) -> None:
    stream = opened()
    first = resume(stream, rest.database)
    assert first.stream_id.startswith("hearth-")
    one = add_one(stream, rest.root, first.stream_token)
    two = add_one(stream, rest.root, one.stream_token)
    stream.cancel()
    # The second answer was lost.
    stream = opened()
    again = resume(stream, rest.database, first.stream_id, one.stream_token)
    assert not again.stream_id and again.stream_token == one.stream_token
    assert add_one(stream, rest.root, one.stream_token) == two
    token = two.stream_token
    for _ in range(20):
        token = add_one(stream, rest.root, token).stream_token
    stream.cancel()
    assert db.document("c/a").get().to_dict() == {"n": 22}
    # More answers were lost than are kept.
    stream = opened()
    with pytest.raises(grpc.RpcError) as caught:
        resume(stream, rest.database, first.stream_id, one.stream_token)
    assert caught.value.code() is grpc.StatusCode.OUT_OF_RANGE and "21 commits" in caught.value.details()
    # What is no token.
    stream = opened()
    with pytest.raises(grpc.RpcError) as caught:
        resume(stream, rest.database, first.stream_id, b"x")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT and "'stream_token'" in caught.value.details()
    # A token of the future is of another history: a new stream begins.
    stream = opened()
    other = resume(stream, rest.database, first.stream_id, b"40")
    assert other.stream_id.startswith("hearth-") and other.stream_id != first.stream_id
    stream.cancel()


class Effects:
    """Threads that each make numbered effects, of which every fifth attempt is repeated, and that try again when the
    server was killed.
    """

    def __init__(self, make: Callable[[grpc.Channel, str, str], None]) -> None:
        self.make = make
        self.address = ""
        self.is_up = threading.Event()
        self.is_over = threading.Event()
        self.faults: list[BaseException] = []
        #: How many effects each worker has seen to.
        self.made = [0] * WORKERS
        self.attempts = [0] * WORKERS
        self.lost = [0] * WORKERS
        self.threads = [threading.Thread(target=self.work, args=(number,), daemon=True) for number in range(WORKERS)]

    def work(self, number: int) -> None:
        try:
            while not self.is_over.is_set():
                self.effect(number, f"w{number}-{self.made[number]}")
                self.made[number] += 1
        except BaseException as error:  # noqa: BLE001 - reported by the test's thread
            self.faults.append(error)

    def effect(self, number: int, event: str) -> None:
        """Returns when the effect is acknowledged: after a lost answer it is tried again, as an event is."""
        while True:
            self.is_up.wait()
            with grpc.insecure_channel(self.address) as channel:
                try:
                    self.attempts[number] += 1
                    self.make(channel, event, f"c/d{number}")
                    # As if the answer was lost. Streams lose their answers themselves.
                    if self.attempts[number] % 5 or isinstance(self.make, WriteStreams):
                        return
                except grpc.RpcError as error:
                    if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                        raise
                    self.lost[number] += 1
                    time.sleep(0.01)


def with_id(channel: grpc.Channel, event: str, document: str) -> None:
    over_grpc(channel, DATABASE, increment(f"{DATABASE}/documents", document, "c/all"), event, timeout=PATIENCE)


def with_ledger(channel: grpc.Channel, event: str, document: str) -> None:
    root = f"{DATABASE}/documents"
    body = increment(root, document, "c/all")
    body["writes"].append({"update": {"name": f"{root}/_once/{event}"}, "currentDocument": {"exists": False}})
    try:
        over_grpc(channel, DATABASE, body, timeout=PATIENCE)
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
            raise


class WriteStreams:
    """A resumable Write stream a document: what has no answer is sent again on the next connection."""

    def __init__(self) -> None:
        self.resumption: dict[str, tuple[str, bytes]] = {}
        self.sent: dict[str, str] = {}

    def __call__(self, channel: grpc.Channel, event: str, document: str) -> None:
        stream = Stream(channel, "Write")
        try:
            name, token = self.resumption.get(document, ("", b""))
            opening = WriteRequest(database=DATABASE, stream_id=name, stream_token=token)
            if not name:
                opening.labels["hearth-resumable"] = "true"
            stream.send(opening)
            answer = stream.take()
            if name:
                assert not answer.stream_id and answer.stream_token == token, "the stream is not resumed"
            else:
                name = answer.stream_id
            token = answer.stream_token
            self.resumption[document] = (name, token)
            body = increment(f"{DATABASE}/documents", document, "c/all")
            request = parse(COMMIT, body)
            write = WriteRequest(stream_token=token)
            for one in request.writes:
                write.writes.add().CopyFrom(one)
            stream.send(write)
            answer = stream.take()
            # Every fifth answer is lost: the caller comes again with the same event, and the old token.
            if self.sent.get(document) != event and int(event.rsplit("-", 1)[1]) % 5 == 0:
                self.sent[document] = event
                raise Lost()
            self.resumption[document] = (name, answer.stream_token)
        finally:
            stream.cancel()


class Lost(grpc.RpcError):
    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE


@pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")
@pytest.mark.parametrize("way", ["id", "ledger", "stream"])
def test_sums_are_exact_though_the_server_is_killed(tmp_path: Path, way: str) -> None:
    seed = int(os.environ.get("HEARTH_TEST_SEED", str(random.randrange(10**6))))
    choice = random.Random(seed)
    make = {"id": with_id, "ledger": with_ledger, "stream": WriteStreams()}[way]
    effects = Effects(make)
    for thread in effects.threads:
        thread.start()
    server = None
    try:
        for _ in range(ROUNDS):
            server = Program(tmp_path)
            effects.address = server.address
            effects.is_up.set()
            time.sleep(0.3 + choice.random())
            effects.is_up.clear()
            server.kill()
            assert not effects.faults, (seed, effects.faults)
            assert_sound(tmp_path / "hearth-data")
        server = Program(tmp_path)
        effects.address = server.address
        # Each thread ends with the effect that it is about.
        effects.is_over.set()
        effects.is_up.set()
        for thread in effects.threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in effects.threads) and not effects.faults, (seed, effects.faults)
        sums = [read(server, f"c/d{number}") for number in range(WORKERS)]
        assert sums == effects.made, seed
        assert read(server, "c/all") == sum(effects.made), seed
        assert sum(effects.made) > ROUNDS * WORKERS and sum(effects.lost) > 0, seed
        print(f"{way}, seed {seed}: {sum(effects.made)} effects, {sum(effects.attempts)} attempts, {ROUNDS} kills")
        server.terminate()
        assert_sound(tmp_path / "hearth-data")
    finally:
        effects.is_over.set()
        effects.is_up.set()
        if server is not None and server.process.poll() is None:
            server.kill()


def read(server: Program, document: str) -> int:
    status, body = server.send("GET", f"/v1/{DATABASE}/documents/{document}")
    assert status == 200, body
    return int(json.loads(body)["fields"]["n"]["integerValue"])
