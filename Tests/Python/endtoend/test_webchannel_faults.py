"""WebChannel with invalid requests, clients that do not read, and many of them.

For any input a client gets an answer that does not report a server fault and does not make it appear offline; other
clients are not affected, and nothing is left behind.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from google.cloud import firestore

from endtoend.channels import Bare, Get, kinds
from support.calls import Calls
from support.http2 import Http2
from support.patience import PATIENCE
from support.program import BINARY, Program, program
from support.webchannel import FORM, Http1, WebListen, form
from support.wire import message_class

pytestmark = pytest.mark.emulator_differs("it has its own ways with wrong requests")



@pytest.fixture
def bare(address: str, project: str) -> Iterator[Bare]:
    session = Bare(Http1(address), project)
    yield session.begin(session.added(2))
    session.leave()


@pytest.fixture
def bystander(address: str, project: str) -> Iterator[WebListen]:
    """Another session, which must not be affected."""
    stream = WebListen(address, project)
    stream.add_query(2, "by")
    stream.snapshot()
    yield stream
    assert stream.is_silent(0)
    stream.add_query(4, "by")
    assert stream.snapshot() == [("ADD", [4]), ("CURRENT", [4])]
    stream.cancel()


def assert_works(session: Bare, get: Get) -> None:
    """The session continues normally."""
    session.send(session.added(90))
    assert kinds(get.told(3)) == ["ADD", "CURRENT", "boundary"]


# Bodies


def message(text: str, place: str = "0") -> bytes:
    return f"count=1&ofs=1&req{place}___data__={quote(text)}".encode()


NO_FORMS = {
    "JSON": b'{"database": "projects/p/databases/d"}',
    "an escape that is none": b"count=1&ofs=1&req0___data__=%ZZ",
    "half an escape": b"count=1&ofs=1&req0___data__=%7",
    "more announced": b"count=2&ofs=1&req0___data__=%7B%7D",
    "fewer announced": b"count=0&ofs=1&req0___data__=%7B%7D",
    "a huge count": b"count=1000000000000000000000&ofs=1",
    "a negative count": b"count=-1&ofs=1",
    "a count in words": b"count=one&ofs=1&req0___data__=%7B%7D",
    "a negative offset": b"count=1&ofs=-1&req0___data__=%7B%7D",
    "a huge offset": b"count=1&ofs=99999999999999999999&req0___data__=%7B%7D",
    "a huge place": message("{}", "99999999999999999999"),
    "a negative place": message("{}", "-1"),
    "bytes": bytes(range(256)),
}


@pytest.mark.parametrize("name", NO_FORMS)
def test_bodies_that_are_no_forms_leave_the_session(bare: Bare, bystander: WebListen, name: str) -> None:
    get = bare.get(0)
    get.told(3)
    answer = bare.post(NO_FORMS[name])
    # A body without any message requests the state.
    assert answer.status == (200 if name == "JSON" else 400), answer
    assert_works(bare, get)


NO_MESSAGES = {
    "no JSON": "{",
    "nothing": "",
    "a number": "7",
    "null": "null",
    "an array": "[]",
    "text": '"x"',
    "an unknown member": '{"database": "projects/p/databases/(default)", "nonsense": 1}',
    "of another type": '{"database": 7}',
    "no bytes": '{"database": "projects/p/databases/(default)", "addTarget": {"targetId": 4, "resumeToken": "*"}}',
    "twice JSON": "{}{}",
    "deep": '{"labels":' * 5000 + "}" * 5000,
    "no UTF-8": "\udcff",
    "a NUL": '{"database": "\x00"}',
}


@pytest.mark.parametrize("name", NO_MESSAGES)
@pytest.mark.parametrize("place", ["first", "later"])
def test_messages_that_are_none_end_the_stream_in_order(
    address: str, project: str, bystander: WebListen, name: str, place: str
) -> None:
    """By an array with the error; an HTTP status would appear as a fault of the network."""
    session = Bare(Http1(address), project)
    text = quote(NO_MESSAGES[name].encode("utf-8", "surrogateescape"))
    body = f"count=1&ofs={int(place == 'later')}&req0___data__={text}".encode()
    if place == "first":
        target = f"{session.path}?VER=8&database={session.database}&RID=5&CVER=22&t=1"
        answer = session.way.send("POST", target, body, {"Content-Type": FORM})
        session.session_id = json.loads(answer.text.split("\n", 1)[1])[0][1][1]
        count = 2
    else:
        session.begin(session.added(2))
        answer = session.post(body)
        count = 5
    assert answer.status == 200
    get = session.get(0)
    error, close = get.told(count)[-2:]
    assert error[1][0]["error"]["status"] == "INVALID_ARGUMENT", error
    assert error[1][0]["error"]["message"]
    assert close[1] == ["close"]
    get.rest()
    session.leave()


def test_a_body_that_breaks_off_is_none(address: str, bare: Bare) -> None:
    get = bare.get(0)
    get.told(3)
    body = form([bare.added(4)], 1)
    host, port = address.rsplit(":", 1)
    head = (
        f"POST {bare.path}?{bare.of_session()}&RID=7&AID=0 HTTP/1.1\r\nHost: {address}\r\n"
        f"Content-Type: {FORM}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    for length in (0, 1, len(body) // 2, len(body) - 1):
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as peer:
            peer.sendall(head.encode() + body[:length])
    # The complete request follows as a retry.
    assert bare.post(body, 7).status == 200
    assert kinds(get.told(3)) == ["ADD", "CURRENT", "boundary"]


def test_messages_too_early_are_bounded(bare: Bare, bystander: WebListen) -> None:
    """A missing request cannot make the server store all following ones."""
    statuses = [bare.post(form([bare.removed(n)], n)).status for n in range(2, 130)]
    assert statuses[:50] == [200] * 50 and statuses[-1] in (400, 429)
    assert set(statuses) <= {200, 400, 429}


def test_a_body_beyond_all_bounds(bare: Bare, bystander: WebListen) -> None:
    chunk = b"x" * (1 << 20)
    target = f"{bare.path}?{bare.of_session()}&RID=7&AID=0"
    peer = Http1(bare.way._address)  # type: ignore[attr-defined]
    connection = peer._connection
    status = 0
    try:
        connection.putrequest("POST", target)
        connection.putheader("Content-Type", FORM)
        connection.putheader("Content-Length", str(200 << 20))
        connection.endheaders()
        for _ in range(200):
            connection.send(chunk)
        status = connection.getresponse().status
    except OSError:
        # It closed during sending; the answer may have arrived nevertheless.
        status = 413
    assert status == 413
    peer.close()


# Queries


@pytest.mark.parametrize("aid", ["x", "-2", "1e9", "99999999999999999999", "", "1.5", "%00"])
def test_an_aid_that_is_no_number(bare: Bare, aid: str) -> None:
    get = bare.get(aid)
    assert get.status == 400
    assert bare.post(form([], 1), None, AID=aid).status == 400
    assert kinds(bare.get(0).told(3)) == ["ADD", "CURRENT", "boundary"]


def test_an_aid_above_what_was_sent(bare: Bare, bystander: WebListen, db: firestore.Client) -> None:
    """No client can have it: later arrays do not count as acknowledged."""
    first = bare.get(0)
    last = first.told(3)[-1][0]
    ahead = bare.get(last + 1000)
    assert ahead.status in (200, 400)
    if ahead.status == 200:
        db.document("c/a").set({"n": 1})
        arrays = ahead.told(2)
        assert kinds(arrays) == ["documentChange", "boundary"]
        assert arrays[0][0] > last
        assert arrays[1][0] == arrays[0][0] + 1


def test_an_aid_that_goes_back(bare: Bare, db: firestore.Client) -> None:
    """Acknowledged arrays are deleted, and not sent again."""
    first = bare.get(0)
    last = first.told(3)[-1][0]
    first.close()
    second = bare.get(last)
    second.take(1)
    db.document("c/a").set({"n": 1})
    second.told(2)
    second.close()
    back = bare.get(0)
    assert min(array[0] for array in back.told(2)) > last


@pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")
def test_an_acknowledgement_ahead_of_its_back_channel(tmp_path: Path) -> None:
    """A GET is delayed by its reader, which meanwhile acknowledges arrays that are not sent: these are omitted."""
    with program(tmp_path, "--memory") as server:
        calls = Calls(server.address)
        for start in range(0, 1500, 500):
            request = message_class("CommitRequest")(database="projects/p/databases/(default)")
            for number in range(start, start + 500):
                made = request.writes.add().update
                made.name = f"projects/p/databases/(default)/documents/c/d{number}"
                made.fields["s"].string_value = "x" * 1000
            calls("Commit", request)
        calls.close()
        idle = []
        # The two connections may belong to one loop of the server or to two, which are different cases.
        for _ in range(6):
            session = Bare(Http1(server.address), "p")
            session.begin(session.added(2))
            # More than the server writes to a client that does not read.
            known = session.get(0).rest()[-1][0]
            assert known > 500
            way = Http2(server.address, reads=False)
            held = Get(way.open(session.get_target(0)))
            session.last_id = known
            session.send()
            way.read_on()
            found: list[Any] = []
            while not found or found[-1][0] <= known or "boundary" not in kinds(found):
                try:
                    found += held.take(1)
                except StopIteration:
                    # The server had sent all of it already, and needs the acknowledgement.
                    held = Get(way.open(session.get_target(found[-1][0])))
            ids = [array[0] for array in found if array[1] != ["noop"]]
            assert ids == sorted(set(ids))
            held.close()
            way.close()
            session.leave()
            idle.append(socket.create_connection(("127.0.0.1", server.port)))
        for connection in idle:
            connection.close()
        assert server.terminate()[0] == 0


def test_rids_carry_no_meaning_for_messages(bare: Bare) -> None:
    """The arrays' numbers do; requests that were repeated or reordered on the network have any RID."""
    get = bare.get(0)
    get.told(3)
    for place, number in enumerate((5, 5, 3, 99_999_999, "x", ""), 1):
        answer = bare.post(form([bare.removed(70 + place)], place), number)
        assert answer.status in (200, 400), answer
        if answer.status == 200:
            assert kinds(get.told(1)) == ["REMOVE"]
        else:
            assert bare.post(form([bare.removed(70 + place)], place)).status == 200
            assert kinds(get.told(1)) == ["REMOVE"]


@pytest.mark.parametrize("change", ["VER=7", "VER=9", "VER=x"])
def test_another_version_of_the_protocol(bare: Bare, change: str) -> None:
    answer = bare.way.send("POST", f"{bare.path}?{change}&RID=1&CVER=22", form([], 0), {"Content-Type": FORM})
    assert answer.status == 400


@pytest.mark.parametrize("verb", ["PUT", "DELETE", "PATCH"])
def test_other_verbs(bare: Bare, verb: str) -> None:
    assert bare.way.send(verb, f"{bare.path}?{bare.of_session()}").status in (400, 404, 405)
    assert kinds(bare.get(0).told(3)) == ["ADD", "CURRENT", "boundary"]


def test_a_get_without_a_session(bare: Bare) -> None:
    assert bare.way.send("GET", f"{bare.path}?VER=8&RID=rpc&AID=0&CI=0&TYPE=xmlhttp").status == 400


def test_gets_that_fight_for_the_back_channel(bare: Bare, db: firestore.Client) -> None:
    """Many at once: one of them succeeds in the end, the others end, and arrays are in order on each."""
    results: list[list[Any]] = []

    def look() -> None:
        results.append(bare.get(0, polls=True).rest())

    threads = [threading.Thread(target=look) for _ in range(20)]
    for thread in threads:
        thread.start()
    db.document("c/a").set({"n": 1})
    for thread in threads:
        thread.join(PATIENCE)
    assert len(results) == 20
    for arrays in results:
        ids = [array[0] for array in arrays]
        assert ids == list(range(1, len(ids) + 1))
    assert bare.send()[1] >= 3


# The end


def test_the_end_of_a_session_is_the_end_of_its_targets(tmp_path: Path) -> None:
    with program(tmp_path, "--memory") as server:
        before = metric(server, "hearth_streams_open")
        sessions = [Bare(Http1(server.address), "p") for _ in range(20)]
        for session in sessions:
            session.begin(session.added(2))
            session.get(0).told(3)
        assert metric(server, "hearth_sessions_open", "hearth_streams_open") >= before
        for session in sessions:
            session.leave()
        deadline = time.monotonic() + PATIENCE
        while metric(server, "hearth_connections_open") > 3 or metric(server, "hearth_streams_open") > before:
            assert time.monotonic() < deadline, "something of a session that was terminated stays"
        for session in sessions:
            assert session.way.send("GET", session.get_target(0)).status == 400


def metric(server: Program, *names: str) -> int:
    text = server.send("GET", "/metrics")[1].decode()
    for name in names:
        if found := re.search(rf"^{name} (\d+)$", text, re.MULTILINE):
            return int(found[1])
    raise AssertionError(f"none of {names} in the metrics")


def test_a_shutdown_tells_open_sessions(tmp_path: Path) -> None:
    # If it waited for them, it would end too late.
    server = Program(tmp_path, "--memory", "--grace", str(2 * PATIENCE))
    streaming, polling = Bare(Http1(server.address), "p"), Bare(Http1(server.address), "p")
    gets = []
    for session, polls in ((streaming, False), (polling, True)):
        session.begin(session.added(2))
        first = session.get(0)
        last = first.told(3)[-1][0]
        first.close()
        if not polls:
            gets.append(session.get(last))
            gets[0].take(1)
    server.process.send_signal(signal.SIGTERM)
    arrays = gets[0].rest()
    assert kinds(arrays)[-1] == "close" and "error" in arrays[-2][1][0]
    assert arrays[-2][1][0]["error"]["status"] == "UNAVAILABLE"
    assert server.end()[0] == 0


# Memory


LARGE = "x" * 200_000


def resident_megabytes(server: Program) -> float:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024  # type: ignore[index]


@pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")
def test_clients_that_never_read_cost_little(tmp_path: Path) -> None:
    """Their streams stop; when they read again, they receive the present state."""
    Commit = message_class("CommitRequest")
    with program(tmp_path, "--data", str(tmp_path / "data")) as server:
        calls = Calls(server.address)
        sessions = [Bare(Http1(server.address), "p") for _ in range(10)]
        for number, session in enumerate(sessions):
            session.begin(session.added(2))
            if number % 2:
                # These have a back channel, and do not read it.
                session.get(0)
        root = "projects/p/databases/(default)/documents/c"

        def write(number: int) -> None:
            request = Commit(database="projects/p/databases/(default)")
            for place in range(5):
                made = request.writes.add()
                made.update.name = f"{root}/d{place}"
                made.update.fields["s"].string_value = LARGE
                made.update.fields["n"].integer_value = number
            calls("Commit", request)

        for number in range(10):
            write(number)
        before = resident_megabytes(server)
        for number in range(10, 90):
            write(number)
        # Each session was sent 80 MB.
        grown = resident_megabytes(server) - before
        assert grown < 10 * 8 + 40, f"{grown:.0f} MB for ten clients"
        state = sessions[0].send()
        assert state[0] == 0 and state[2] < 4 << 20
        late: dict[str, int] = {}
        acknowledged = 0
        while set(late.values()) != {89}:
            arrays = sessions[0].get(acknowledged, polls=True).rest()
            acknowledged = arrays[-1][0]
            for _, (content,) in arrays:
                if isinstance(content, dict) and "documentChange" in content:
                    document = content["documentChange"]["document"]
                    late[document["name"].rsplit("/", 1)[1]] = int(document["fields"]["n"]["integerValue"])
        assert len(late) == 5
        calls.close()
        for session in sessions:
            session.leave()


@pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")
def test_many_sessions(tmp_path: Path) -> None:
    """Sessions that were abandoned, each with a target: the next client is served as usual."""
    with program(tmp_path, "--memory") as server:
        before = resident_megabytes(server)

        def leave_one(number: int) -> str:
            session = Bare(Http1(server.address), "p")
            session.begin(session.added(2))
            session.way.close()
            assert session.session_id
            return session.session_id

        with ThreadPoolExecutor(8) as pool:
            ids = list(pool.map(leave_one, range(2000)))
        assert len(set(ids)) == 2000
        assert resident_megabytes(server) - before < 100
        listen = WebListen(server.address, "p")
        listen.add_query(2, "c")
        assert listen.snapshot() == [("ADD", [2]), ("CURRENT", [2])]
        calls = Calls(server.address)
        request = message_class("CommitRequest")(database="projects/p/databases/(default)")
        request.writes.add().update.name = "projects/p/databases/(default)/documents/c/a"
        calls("Commit", request)
        calls.close()
        assert listen.snapshot() == [("change", "c/a", None, [2], [])]
        listen.cancel()


#: The lifetime of a session without requests, plus a timer's tolerance.
IDLE_SECONDS = 125


@pytest.mark.skipif(not os.environ.get("HEARTH_TEST_SLOW"), reason="takes two minutes; HEARTH_TEST_SLOW is not set")
def test_a_session_that_nobody_uses_expires(bare: Bare) -> None:
    bare.get(0).told(3)
    for get in bare._gets:
        get.close()
    time.sleep(IDLE_SECONDS)
    answer = bare.post(form([], 1))
    assert answer.status == 400 and answer.text.find("Unknown SID") > 0
