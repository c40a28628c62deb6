"""Write streams, message by message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.cloud import firestore

from support.streams import Stream, WriteRequest
from support.webchannel import WebWrite


@pytest.fixture(params=["grpc", "webchannel", "polls"])
def stream(request: pytest.FixtureRequest, channel: grpc.Channel, address: str, project: str) -> Iterator[Any]:
    if request.param == "grpc":
        opened: Any = Stream(channel, "Write")
    else:
        opened = WebWrite(address, project, polls=request.param == "polls")
    yield opened
    opened.cancel()


def begin(stream: Stream, project: str) -> bytes:
    stream.send(WriteRequest(database=f"projects/{project}/databases/(default)"))
    answer = stream.take()
    assert answer.stream_id and answer.stream_token and not answer.write_results
    return answer.stream_token


def writes(project: str, token: bytes, **documents: int) -> Any:
    request = WriteRequest(stream_token=token)
    for name, number in documents.items():
        write = request.writes.add()
        write.update.name = f"projects/{project}/databases/(default)/documents/c/{name}"
        write.update.fields["n"].integer_value = number
    return request


def test_commits_are_answered_in_order(stream: Stream, project: str, db: firestore.Client) -> None:
    token = begin(stream, project)
    # Sent without waiting for the answers, as clients do.
    for number in range(5):
        stream.send(writes(project, token, a=number, **{f"x{number}": number}))
    times = []
    for _ in range(5):
        answer = stream.take()
        assert not answer.stream_id and answer.stream_token and len(answer.write_results) == 2
        times.append(answer.commit_time.ToNanoseconds())
        assert answer.write_results[0].update_time == answer.commit_time
    assert times == sorted(set(times))
    assert db.document("c/a").get().get("n") == 4
    stream.send(WriteRequest(stream_token=answer.stream_token))
    assert stream.take().stream_token
    stream.half_close()
    assert stream.take() is None


def test_a_failed_commit_ends_the_stream(stream: Stream, project: str, db: firestore.Client) -> None:
    token = begin(stream, project)
    bad = writes(project, token, b=1)
    bad.writes[0].current_document.exists = True
    stream.send(writes(project, token, a=1))
    stream.send(bad)
    stream.send(writes(project, token, d=1))
    assert stream.take().write_results
    with pytest.raises(grpc.RpcError) as caught:
        stream.take()
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert {d.id for d in db.collection("c").get()} == {"a"}


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (WriteRequest(), "'database' must be set on an initial write request."),
        (
            WriteRequest(database="projects/p/databases/(default)", writes=[{"delete": "x"}]),
            "'writes' must not be set on an initial write request.",
        ),
    ],
)
def test_bad_beginnings(stream: Stream, first: Any, message: str) -> None:
    stream.send(first)
    with pytest.raises(grpc.RpcError) as caught:
        stream.take()
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT and caught.value.details() == message


def test_commits_that_wait_for_a_transaction_keep_their_order(
    stream: Stream, project: str, db: firestore.Client
) -> None:
    """The first one must wait for the transaction's lock; later ones must not be made before it."""
    db.document("c/a").set({"n": -1})
    transaction = db.transaction()
    transaction._begin()
    db.document("c/a").get(transaction=transaction)
    token = begin(stream, project)
    stream.send(writes(project, token, a=1, b=1))
    stream.send(writes(project, token, b=2))
    stream.send(writes(project, token, a=3, b=3))
    assert stream.is_silent()
    assert not db.document("c/b").get().exists
    transaction._rollback()
    times = [stream.take().commit_time.ToNanoseconds() for _ in range(3)]
    assert times == sorted(set(times))
    assert db.document("c/a").get().to_dict() == {"n": 3}
    assert db.document("c/b").get().to_dict() == {"n": 3}
