"""Listen and Write as in browsers: over WebChannel, request by request.

The channel's content is tested in `test_listen.py` and `test_write_stream.py`; here the channel itself. The client also
validates: array ids, frames and answers that violate the protocol fail a test at any time (`support/webchannel.py`).
"""

from __future__ import annotations

import base64
import json
import random
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import grpc
import pytest
from google.cloud import firestore

from endtoend.channels import Bare, Get, kinds
from support.http2 import Http2
from support.patience import PATIENCE
from support.streams import ListenRequest, WriteRequest
from support.webchannel import (
    FORM,
    Answer,
    ChannelRefused,
    Frames,
    Http1,
    ProtocolFault,
    Way,
    WebListen,
    WebStream,
    WebWrite,
    form,
    frames,
)

#: Less than the pause after which the server sends something on its own.
PROMPT_SECONDS = 20.0
GREATER = 3


@pytest.fixture(params=["http1", "http2"])
def way(request: pytest.FixtureRequest, address: str) -> Iterator[Way]:
    if request.param == "http2" and request.getfixturevalue("is_emulator"):
        pytest.skip("the emulator takes only gRPC over HTTP/2")
    opened = Http1(address) if request.param == "http1" else Http2(address)
    yield opened
    opened.close()


@pytest.fixture
def bare(way: Way, project: str) -> Iterator[Bare]:
    """A Listen session before its handshake."""
    session = Bare(way, project)
    yield session
    if session.session_id:
        session.leave()


@pytest.fixture(params=["stream", "poll", "http2"])
def listen(request: pytest.FixtureRequest, address: str, project: str) -> Iterator[WebListen]:
    if request.param == "http2" and request.getfixturevalue("is_emulator"):
        pytest.skip("the emulator takes only gRPC over HTTP/2")
    options = {"stream": {}, "poll": {"polls": True}, "http2": {"way": Http2(address)}}[request.param]
    stream = WebListen(address, project, **options)
    yield stream
    stream.cancel()


def put(db: firestore.Client, **documents: Any) -> None:
    batch = db.batch()
    for name, value in documents.items():
        batch.set(db.document("c", name), {"n": value} if isinstance(value, int) else value)
    batch.commit()


# Tests of the validation


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_frames_are_read_in_pieces_of_any_size(size: int) -> None:
    text = '[[1,[{"a":"é漢😀\\u0000"}]]]'
    units = len(text.encode("utf-16-le")) // 2
    body = (f"{units}\n{text}" * 2 + "11\n" + '[[2,["é"]]]').encode()
    reader, found = Frames(), []
    for start in range(0, len(body), size):
        found += reader.feed(body[start : start + size])
    reader.finish()
    assert found == [json.loads(text)] * 2 + [[[2, ["é"]]]]


@pytest.mark.parametrize(
    "body",
    [
        '12\n[[2,["é"]]]',  # in bytes
        '11\n[[2,["😀"]]]',  # in code points
        '011\n[[2,["é"]]]',
        '10\n[[2,["é"]]]',
        '11\r\n[[2,["é"]]]',
        '11\n[[2,["é"]]]\n',
        "2\n{}",
        "-1\n",
        "x" * 100,
    ],
)
def test_frames_that_are_wrong_are_noticed(body: str) -> None:
    with pytest.raises(ProtocolFault):
        frames(body.encode())


# The handshake


def test_a_handshake(bare: Bare) -> None:
    bare.begin(bare.added(2))
    assert bare.session_id is not None and len(bare.session_id) >= 16
    assert bare.keep_alive_seconds == 30


def test_the_first_post_may_bring_several_messages(bare: Bare) -> None:
    bare.begin(bare.added(2), bare.added(4))
    assert kinds(bare.get(0).told(6)) == ["ADD", "CURRENT", "boundary"] * 2


def test_the_first_post_may_bring_nothing(bare: Bare) -> None:
    bare.begin()
    assert bare.send(bare.added(2))[1] >= 0
    assert "CURRENT" in kinds(bare.get(0).told(3))


def test_a_repeated_handshake_makes_another_session(way: Way, project: str) -> None:
    one, other = Bare(way, project).begin(), Bare(way, project).begin()
    assert one.session_id != other.session_id
    with suppress(TimeoutError if isinstance(way, Http1) else ()):
        one.terminate()
    assert other.send(other.added(2))[1] >= 0


# Requests


def test_a_repeated_post_is_handled_once(way: Way, project: str, db: firestore.Client) -> None:
    write = Bare(way, project, "Write").begin({"database": f"projects/{project}/databases/(default)"})
    get = write.get(0)
    token = get.told(1)[0][1][0]["streamToken"]
    message = write.written(token, a="x")
    message["writes"][0]["updateMask"] = {"fieldPaths": ["s"]}
    message["writes"][0]["updateTransforms"] = [{"fieldPath": "n", "increment": {"integerValue": "1"}}]
    write.send(message)
    for _ in range(3):
        assert len(write.repeat(write.posts[-1])) == 3
    # Another request, which begins with the same message, as when two attempts are joined.
    assert write.post(form([message, write.written(token, b="y")], 1)).status == 200
    assert len(get.told(2)) == 2
    assert db.document("c/a").get().to_dict() == {"s": "x", "n": 1}
    assert db.document("c/b").get().exists
    write.leave()


def test_a_post_whose_answer_was_lost(address: str, project: str, db: firestore.Client) -> None:
    write = WebWrite(address, project)
    write.send(WriteRequest(database=f"projects/{project}/databases/(default)"))
    token = write.take().stream_token
    for number in range(10):
        request = WriteRequest(stream_token=token)
        made = request.writes.add()
        made.update.name = f"projects/{project}/databases/(default)/documents/c/a"
        made.update_mask.SetInParent()
        made.update_transforms.add(field_path="n").increment.integer_value = 1
        write.send(request, loses_answer=number % 2 == 0)
    results = [write.take() for _ in range(10)]
    assert [r.write_results[0].transform_results[0].integer_value for r in results] == list(range(1, 11))
    assert write.is_silent()
    assert db.document("c/a").get().get("n") == 10
    write.cancel()


@pytest.mark.emulator_differs("it takes messages in the order in which they come")
def test_posts_that_overtake_each_other(bare: Bare) -> None:
    """Over HTTP/2 browsers have several concurrent POSTs."""
    bare.begin(bare.added(2))
    get = bare.get(0)
    get.told(3)
    assert bare.post(form([bare.removed(4)], 2)).status == 200
    assert bare.post(form([bare.added(4)], 1)).status == 200
    assert kinds(get.told(4)) == ["ADD", "CURRENT", "boundary", "REMOVE"]


def test_a_body_that_comes_in_pieces(bare: Bare, address: str) -> None:
    bare.begin(bare.added(2, "é漢😀"))
    get = bare.get(0)
    get.told(3)
    body = form([bare.removed(2), bare.added(4, "é漢😀")], 1)
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        target = f"{bare.path}?{bare.of_session()}&RID=77&AID=3"
        peer.sendall(
            f"POST {target} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {FORM}\r\n"
            f"Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        for start in range(0, len(body), 3):
            piece = body[start : start + 3]
            peer.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
        peer.sendall(b"0\r\n\r\n")
        assert peer.recv(65536).startswith(b"HTTP/1.1 200")
    assert kinds(get.told(4)) == ["REMOVE", "ADD", "CURRENT", "boundary"]


def test_a_target_exchanged_in_one_post(bare: Bare) -> None:
    """As SDKs do when a count differs."""
    bare.begin(bare.added(2))
    get = bare.get(0)
    get.told(3)
    label = {"labels": {"goog-listen-tags": "existence-filter-mismatch"}}
    bare.send(bare.removed(2), bare.added(2) | label)
    assert kinds(get.told(4)) == ["REMOVE", "ADD", "CURRENT", "boundary"]


@pytest.mark.emulator_differs("it takes less")
def test_a_large_message(address: str, project: str, db: firestore.Client) -> None:
    """Percent-encoding makes three bytes of one."""
    write = WebWrite(address, project)
    write.send(WriteRequest(database=f"projects/{project}/databases/(default)"))
    request = WriteRequest(stream_token=write.take().stream_token)
    for number in range(4):
        made = request.writes.add()
        made.update.name = f"projects/{project}/databases/(default)/documents/c/d{number}"
        made.update.fields["s"].string_value = "é" * 500_000
    write.send(request)
    assert len(write.take().write_results) == 4
    assert db.document("c/d3").get().get("s") == "é" * 500_000
    write.cancel()


# The back channel


def test_text_of_every_width(db: firestore.Client, listen: WebListen) -> None:
    texts = ["plain", "é", "漢", "😀", "\u2028\u2029\ufffe\uffff", '\x00\x1f\x7f"\\/', "a\u0301\U0010ffff"]
    put(db, **{f"é漢😀{number}": {"s": text} for number, text in enumerate(texts)})
    listen.add_query(2, "c")
    received = {}
    while True:
        message = listen.take()
        if message.target_change.target_change_type == 3:
            break
        if message.HasField("document_change"):
            document = message.document_change.document
            received[document.name.rsplit("/", 1)[1]] = document.fields["s"].string_value
    assert received == {f"é漢😀{number}": text for number, text in enumerate(texts)}


def test_what_is_not_acknowledged_comes_again(bare: Bare) -> None:
    bare.begin(bare.added(2))
    first = bare.get(0)
    arrays = first.told(3)
    first.close()
    again = bare.get(0)
    assert again.told(3) == arrays
    again.close()
    # The last one was lost on the network.
    part = bare.get(arrays[1][0])
    assert part.told(1) == arrays[2:]


def test_a_get_with_nothing_to_tell_brings_a_noop_at_once(bare: Bare) -> None:
    """Otherwise browsers assume that a proxy buffers it, and change to polling."""
    bare.begin(bare.added(2))
    first = bare.get(0)
    last = first.told(3)[-1][0]
    first.close()
    began = time.monotonic()
    ((number, content),) = bare.get(last).take(1)
    assert content == ["noop"] and number > last
    assert time.monotonic() - began < PROMPT_SECONDS


def test_a_second_get_takes_over(bare: Bare, db: firestore.Client) -> None:
    bare.begin(bare.added(2))
    first = bare.get(0)
    last = first.told(3)[-1][0]
    second = bare.get(last)
    first.rest()  # It ends.
    put(db, a=1)
    found: list[Any] = []
    while "boundary" not in kinds(found):
        found += second.take(1)
    assert "documentChange" in kinds(found)
    assert [array[0] for array in found] == list(range(last + 1, last + 1 + len(found)))


def test_a_long_poll_ends_after_one_batch(bare: Bare, db: firestore.Client) -> None:
    bare.begin(bare.added(2))
    arrays = bare.get(0, polls=True).rest()
    while "boundary" not in kinds(arrays):
        arrays += bare.get(arrays[-1][0], polls=True).rest()
    found: list[Any] = []
    polls = threading.Thread(target=lambda: found.extend(bare.get(arrays[-1][0], polls=True).rest()))
    polls.start()
    put(db, a=1)
    polls.join(PATIENCE)
    assert found and not polls.is_alive()
    assert found[0][0] == arrays[-1][0] + 1


@pytest.mark.emulator_differs("it knows no TO")
def test_a_long_poll_ends_when_its_client_wishes(bare: Bare) -> None:
    bare.begin(bare.added(2))
    arrays = bare.get(0, polls=True).rest()
    while "boundary" not in kinds(arrays):
        arrays += bare.get(arrays[-1][0], polls=True).rest()
    began = time.monotonic()
    ((number, content),) = bare.get(arrays[-1][0], polls=True, query="&TO=400").rest()
    assert content == ["noop"] and number == arrays[-1][0] + 1
    assert 0.3 < time.monotonic() - began < 0.4 + PROMPT_SECONDS


@pytest.mark.emulator_differs("it notices only when it writes that a connection has gone")
def test_the_answer_to_a_post_tells_the_state(bare: Bare) -> None:
    bare.begin(bare.added(2))
    get = bare.get(0)
    bare.last_id = get.told(3)[-1][0]
    state = bare.send(bare.added(4))
    assert state[0] == 1
    last = get.told(3)[-1][0]
    get.close()
    deadline = time.monotonic() + PATIENCE
    while (state := bare.send())[0] == 1:
        assert time.monotonic() < deadline, "the GET has gone, and counts as attached"
    assert state[1] >= last and state[2] > 0


@pytest.mark.emulator_differs("it counts what is acknowledged, too")
def test_a_post_acknowledges(bare: Bare) -> None:
    bare.begin(bare.added(2))
    get = bare.get(0)
    last = get.told(3)[-1][0]
    assert bare.send() == [1, last, bare.send()[2]]
    bare.last_id = last
    assert bare.send() == [1, last, 0]


def test_nothing_is_lost_and_nothing_doubled_when_connections_break(db: firestore.Client, listen: WebListen) -> None:
    """The client fails on an array that is repeated or missing."""
    choice = random.Random(5)
    listen.add_query(2, "c")
    listen.snapshot()
    state: dict[str, int] = {}
    for number in range(40):
        put(db, **{f"d{number % 7}": number, f"e{number % 3}": number})
        if not listen.session.polls:
            listen.session.wait_until_attached()
        match choice.randrange(4):
            case 0:
                listen.session.wait_until_attached()
                listen.session.cut()
            case 1:
                listen.session.wait_until_attached()
                listen.session.detach()
                put(db, f=number)
                listen.session.attach()
            case 2:
                listen.add_documents(100 + number, "c/x")
    put(db, last=1)
    while "c/last" not in state:
        for message in listen.snapshot():
            if message[0] == "change" and 2 in message[3]:
                state[message[1]] = message[2]
    assert state == {f"c/{document.id}": document.get("n") for document in db.collection("c").get()}
    assert listen.session.counts.gets > 10


def test_a_session_outlives_its_connections(bare: Bare, db: firestore.Client) -> None:
    bare.begin(bare.added(2))
    get = bare.get(0)
    last = get.told(3)[-1][0]
    get.close()
    put(db, a=1)
    put(db, a=2)
    later = bare.get(last)
    found: list[Any] = []
    while not any(kind == "documentChange" for kind in kinds(found)) or "boundary" not in kinds(found):
        found += later.take(1)
    assert [array[0] for array in found] == list(range(last + 1, last + 1 + len(found)))


# The end


@pytest.mark.emulator_differs("it never answers")
def test_terminating_ends_the_back_channel_and_the_session(bare: Bare) -> None:
    bare.begin(bare.added(2))
    get = bare.get(0)
    get.told(3)
    assert bare.terminate().status == 200
    get.rest()
    answer = bare.post(form([bare.removed(2)], 1))
    assert answer.status == 400
    # A repetition has no effect.
    assert bare.terminate().status in (200, 400)


@pytest.mark.emulator_differs("it never answers")
def test_terminating_without_a_beacon(bare: Bare) -> None:
    """By an image element, whose request is a GET."""
    bare.begin(bare.added(2))
    answer = bare.way.send("GET", f"{bare.path}?{bare.of_session()}&RID=9&TYPE=terminate&zx=a")
    assert answer.status == 200
    assert bare.post(form([], 1)).status == 400


@pytest.mark.emulator_differs("its answer has no text")
@pytest.mark.parametrize("which", ["GET", "POST", "after terminate", "empty"])
def test_unknown_sessions(bare: Bare, which: str) -> None:
    """Browsers search for these words except at the beginning."""
    bare.begin(bare.added(2))
    changed = bare.of_session()
    match which:
        case "after terminate":
            bare.terminate()
        case "empty":
            changed = re.sub("SID=.*", "SID=", changed)
        case _:
            changed = changed.replace("SID=", "SID=x")
    verb = "GET" if which == "GET" else "POST"
    body = b"" if verb == "GET" else form([bare.removed(2)], 1)
    rid = "rpc" if verb == "GET" else "5"
    answer = bare.way.send(verb, f"{bare.path}?{changed}&RID={rid}&AID=0&CI=0", body, {"Content-Type": FORM})
    assert answer.status == 400
    assert answer.text.find("Unknown SID") > 0
    assert answer.headers["access-control-allow-origin"] == "http://app.localhost:5000"


# Errors


def test_a_refused_target_leaves_the_others(db: firestore.Client, listen: WebListen, is_emulator: bool) -> None:
    if is_emulator:
        pytest.skip("the emulator differs: its stream ends")
    listen.add_query(2, "c")
    listen.snapshot()
    listen.add_query(4, "a/b")
    assert listen.next()[:3] == ("REMOVE", [4], grpc.StatusCode.INVALID_ARGUMENT.value[0])
    put(db, a=1)
    assert listen.snapshot() == [("change", "c/a", 1, [2], [])]


@pytest.mark.emulator_differs("it doesn't close the session")
def test_a_refused_write_ends_the_session_in_order(way: Way, project: str, db: firestore.Client) -> None:
    write = Bare(way, project, "Write").begin({"database": f"projects/{project}/databases/(default)"})
    get = write.get(0)
    token = get.told(1)[0][1][0]["streamToken"]
    bad = write.written(token, b="x")
    bad["writes"][0]["currentDocument"] = {"exists": True}
    write.send(write.written(token, a="x"), bad, write.written(token, c="x"))
    arrays = get.told(3)
    assert "commitTime" in arrays[0][1][0]
    error = arrays[1][1][0]["error"]
    assert error["status"] == "NOT_FOUND" and error["message"]
    assert arrays[2][1] == ["close"]
    assert {document.id for document in db.collection("c").get()} == {"a"}


@pytest.mark.emulator_differs("it never answers")
@pytest.mark.parametrize("token", ["Bearer nonsense", "nonsense", "Bearer ", "Basic eDp5", "Bearer a.b.c"])
def test_no_token_costs_the_handshake(way: Way, project: str, token: str) -> None:
    """A status of 401 or 403 would make an app appear offline."""
    session = Bare(way, project, headers={"Authorization": token})
    session.begin(session.added(2))
    assert session.get(0).take(1)
    session.leave()


def test_a_mock_token_that_has_expired(way: Way, project: str) -> None:
    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    payload = {"iss": f"https://securetoken.google.com/{project}", "aud": project, "sub": "alice", "user_id": "alice"}
    token = f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(payload | {'iat': 0, 'exp': 3600, 'auth_time': 0})}."
    session = Bare(way, project, headers={"X-Goog-Api-Client": "gl-js/", "Authorization": f"Bearer {token}"})
    session.begin(session.added(2))
    assert kinds(session.get(0).told(3)) == ["ADD", "CURRENT", "boundary"]
    session.leave()


# Headers


def assert_open_to(origin: str, answer: Answer | Get) -> None:
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["access-control-allow-credentials"] == "true"
    assert "origin" in answer.headers["vary"].lower()


@pytest.mark.emulator_differs("it never answers a terminate")
def test_every_answer_names_the_origin(bare: Bare) -> None:
    bare.begin(bare.added(2))
    get = bare.get(0)
    assert_open_to("http://app.localhost:5000", get)
    assert_open_to("http://app.localhost:5000", bare.post(form([], 1)))
    bare.terminate()
    refused = bare.post(form([], 1))
    assert refused.status == 400
    assert_open_to("http://app.localhost:5000", refused)


def test_the_back_channel_is_not_held_up_on_its_way(bare: Bare) -> None:
    bare.begin(bare.added(2))
    headers = bare.get(0).headers
    assert headers["content-type"].lower() == "text/plain; charset=utf-8"
    assert headers["x-content-type-options"] == "nosniff"
    assert "max-age=0" in headers["cache-control"]
    assert "content-encoding" not in headers


@pytest.mark.emulator_differs("without Vary")
@pytest.mark.parametrize("path", ["/google.firestore.v1.Firestore/Listen/channel", "/v1/projects/p/databases/d"])
def test_preflights(way: Way, path: str) -> None:
    asked = "google-cloud-resource-prefix,x-firebase-gmpid,x-goog-api-client,authorization"
    headers = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": asked}
    answer = way.send("OPTIONS", path, b"", headers)
    assert answer.status in (200, 204)
    assert_open_to("http://app.localhost:5000", answer)
    assert set(asked.split(",")) <= set(re.split(r", *", answer.headers["access-control-allow-headers"].lower()))
    assert "POST" in answer.headers["access-control-allow-methods"]


# Both methods as streams


def test_a_listener_sees_what_a_writer_wrote(address: str, project: str, listen: WebListen) -> None:
    listen.add_query(2, "c", where=[("n", GREATER, 0)])
    listen.snapshot()
    write = WebWrite(address, project)
    write.send(WriteRequest(database=listen.database))
    token = write.take().stream_token
    for number in range(1, 4):
        request = WriteRequest(stream_token=token)
        made = request.writes.add()
        made.update.name = f"{listen.root}/c/a"
        made.update.fields["n"].integer_value = number
        write.send(request)
        answer = write.take()
        token = answer.stream_token
        assert ("change", "c/a", number, [2], []) in listen.snapshot()
        # Otherwise an SDK would show the write as pending forever.
        assert listen.read_time >= answer.commit_time.ToNanoseconds()
    write.cancel()


@pytest.mark.parametrize("method", ["Listen", "Write"])
@pytest.mark.emulator_differs("it has other rules for first messages")
def test_a_bad_beginning_is_told(address: str, project: str, method: str) -> None:
    stream = WebStream(address, method, f"projects/{project}/databases/(default)")
    stream.send(ListenRequest(remove_target=3) if method == "Listen" else WriteRequest())
    with pytest.raises(grpc.RpcError) as caught:
        stream.take()
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    stream.cancel()


def test_unknown_methods_have_no_channel(way: Way, project: str) -> None:
    session = Bare(way, project, "Commit")
    with pytest.raises(ChannelRefused) as caught:
        session.begin()
    assert caught.value.status in (400, 404, 501)
