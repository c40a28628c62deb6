"""The Realtime Database by long polling, as in the SDK for the web: scripts whose URLs contain the page's messages."""

from __future__ import annotations

import base64
import json
import os
import re
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from endtoend.database_poller import Poller
from endtoend.database_wire import SECONDS_MAX, Tree, Wire
from support.patience import PATIENCE
from support.servers import free_port, running


@pytest.fixture
def namespace() -> str:
    return f"ns-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def tree(address: str, namespace: str) -> Iterator[Tree]:
    made = Tree(address, namespace)
    yield made
    made.close()


@pytest.fixture
def page(address: str, namespace: str) -> Poller:
    return Poller(address, namespace)


def test_the_first_answer_brings_the_handshake(address: str, page: Poller) -> None:
    assert page.handshake["t"] == "c" and page.handshake["d"]["t"] == "h"
    assert page.handshake["d"]["d"]["h"] == address
    assert len(page.id) == 32 and len(page.password) == 32 and page.id != page.password


def test_requests_and_answers(page: Poller) -> None:
    assert page.ask(1, "p", {"p": "/a", "d": {"b": "ä😀", "c": [1, 2]}}) == {"s": "ok", "d": ""}
    assert page.ask(2, "g", {"p": "/a", "q": {}})["d"] == {"b": "ä😀", "c": {"0": 1, "1": 2}}
    page.say({"t": "c", "d": {"t": "p", "d": {}}})
    assert page.messages == [{"t": "c", "d": {"t": "o", "d": None}}]


def test_several_messages_in_one_request_are_taken_in_order(page: Poller) -> None:
    page.say(*({"t": "d", "d": {"r": number, "a": "p", "b": {"p": "/n", "d": number}}} for number in range(1, 9)))
    for number in range(1, 9):
        assert page.answer(number) == {"s": "ok", "d": ""}
    assert page.ask(9, "g", {"p": "/n", "q": {}})["d"] == 8


def test_a_long_message_comes_in_pieces_in_any_order(page: Poller) -> None:
    text = "x€" * 3000
    pieces = page.pieces({"t": "d", "d": {"r": 1, "a": "p", "b": {"p": "/long", "d": text}}})
    assert len(pieces) > 5
    threads = []
    scripts: dict[int, str] = {}

    def send(index: int, piece: str) -> None:
        scripts[index] = page.get(f"/.lp?{page.who}&ser={index}&{piece.format(0)}")

    # Each request answers the one before it, so they cannot be sent one after another.
    for index, piece in enumerate(reversed(pieces)):
        threads.append(threading.Thread(target=send, args=(index, piece)))
        threads[-1].start()
        time.sleep(0.02)
    for thread in threads:
        thread.join()
    calls = [call for script in scripts.values() for call in page.calls(script)]
    for _, arguments in sorted(calls, key=lambda call: call[1][0]):
        assert arguments[0] == page.number
        page.number += 1
        page.messages += arguments[1]
    assert page.answer(1) == {"s": "ok", "d": ""}
    assert page.ask(2, "g", {"p": "/long", "q": {}})["d"] == text


def test_a_piece_that_comes_twice_counts_once(page: Poller) -> None:
    message = {"t": "d", "d": {"r": 1, "a": "p", "b": {"p": "/n", "d": {".sv": {"increment": 1}}}}}
    piece = "&" + page.pieces(message)[0].format(0)
    page.poll(piece)
    assert page.answer(1)["s"] == "ok"
    threading.Timer(0.3, lambda: page.get(f"/.lp?{page.who}&ser=99")).start()
    page.poll(piece)
    # The other request was left with the next number.
    page.number += 1
    page2 = {"t": "d", "d": {"r": 2, "a": "g", "b": {"p": "/n", "q": {}}}}
    script = page.get(f"/.lp?{page.who}&ser=100&{page.pieces(page2)[0].format(0)}")
    for _, arguments in page.calls(script):
        page.messages += arguments[1]
    assert page.answer(2)["d"] == 1


def test_listens_hear_of_changes_while_a_request_waits(page: Poller, tree: Tree) -> None:
    assert page.ask(1, "q", {"p": "/a", "h": ""})["s"] == "ok"
    assert page.pushes() == [{"a": "d", "b": {"p": "a", "d": None}}]
    began = time.monotonic()
    change = threading.Timer(0.5, lambda: tree.put("/a", {"b": 1}))
    change.start()
    page.poll()
    change.join()
    assert 0.4 < time.monotonic() - began < 15
    assert page.pushes() == [{"a": "d", "b": {"p": "a", "d": {"b": 1}}}]


def test_a_new_request_answers_the_one_that_waits(page: Poller) -> None:
    script: list[str] = []
    waiting = threading.Thread(target=lambda: script.append(page.get(f"/.lp?{page.who}&ser=1")))
    waiting.start()
    time.sleep(0.3)
    assert not script
    pieces = page.pieces({"t": "d", "d": {"r": 1, "a": "p", "b": {"p": "/a", "d": 1}}})
    second = page.get(f"/.lp?{page.who}&ser=2&{pieces[0].format(0)}")
    waiting.join(PATIENCE)
    assert page.calls(script[0]) == [("pRTLPCB", [1, []])]
    page.take(script[0])
    page.take(second)
    assert page.answer(1)["s"] == "ok"


def test_a_name_that_scripts_understand_otherwise_is_data(page: Poller) -> None:
    value = {"__proto__": {"a": "\u2028</script>"}}
    assert page.ask(1, "p", {"p": "/a", "d": value})["s"] == "ok"
    pieces = page.pieces({"t": "d", "d": {"r": 2, "a": "g", "b": {"p": "/a", "q": {}}}})
    script = page.get(f"/.lp?{page.who}&ser=5&{pieces[0].format(0)}")
    if "__proto__" not in script:
        page.take(script)
        script = page.get(f"/.lp?{page.who}&ser=6")
    assert "JSON.parse(" in script
    page.take(script)
    assert page.answer(2)["d"] == value


def test_goodbye_ends_the_session_and_does_what_was_to_be_done(page: Poller, tree: Tree) -> None:
    frame = page.get(f"/.lp?dframe=t&{page.who}")
    goodbye = re.search(r'sendBeacon\("([^"]+)"\)', frame)
    assert goodbye
    # The frame is loaded at the beginning: that alone closes nothing.
    assert page.ask(1, "o", {"p": "/gone", "d": True})["s"] == "ok"
    assert tree.get("/gone") is None
    page.get(goodbye[1], 204, "POST")
    deadline = time.monotonic() + SECONDS_MAX
    while tree.get("/gone") is not True:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    page.get(f"/.lp?{page.who}&ser=9", 404)
    page.get(goodbye[1], 204, "POST")


def test_the_next_session_ends_the_last(address: str, namespace: str, page: Poller, tree: Tree) -> None:
    assert page.ask(1, "o", {"p": "/gone", "d": True})["s"] == "ok"
    former = page.handshake["d"]["d"]["s"]
    after = Poller(address, namespace, f"&ls={former}")
    assert after.ask(1, "g", {"p": "/gone", "q": {}})["d"] is True
    page.poll()
    assert page.closed_after == page.number - 1


def test_what_cannot_be_read_ends_the_session(page: Poller) -> None:
    page.poll("&seg0=0&ts0=1&d0=" + base64.urlsafe_b64encode(b"nonsense").decode())
    assert page.closed_after == page.number - 1
    page.get(f"/.lp?{page.who}&ser=9", 404)


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/.lp", 400),
        ("/.lp?id=a", 400),
        ("/.lp?id=a&pw=b", 404),
        ("/.lp?id=a&pw=b&disconn=t", 204),
        ("/.lp?start=t&cb=alert(1)", 400),
        ("/.lp?start=t&cb=%zz", 400),
        ("/.lp?id={id}&pw=wrong", 404),
        ("/.lp?id={id}&pw={pw}&d0=AAAA", 400),
        ("/.lp?id={id}&pw={pw}&seg0=-1&ts0=1&d0=AAAA", 400),
        ("/.lp?id={id}&pw={pw}&seg0=x&ts0=1&d0=AAAA", 400),
    ],
)
def test_bad_requests_are_refused(page: Poller, target: str, status: int) -> None:
    page.get(target.replace("{id}", page.id).replace("{pw}", page.password), status)
    # And other sessions are not affected.
    assert page.ask(1, "p", {"p": "/a", "d": 1})["s"] == "ok"


@pytest.mark.parametrize("data", ["&seg0=0&ts0=0&d0=A", "&seg0=9999&ts0=1&d0=A", "&seg0=0&ts0=99999&d0=A", "&seg0=0&ts0=1&d0=!"])
def test_pieces_have_bounds(page: Poller, data: str) -> None:
    page.poll(data)
    assert page.closed_after == page.number - 1


def test_a_client_that_wants_to_change_over_is_told_to_stay(address: str, namespace: str, page: Poller) -> None:
    session = page.handshake["d"]["d"]["s"]
    with connect(f"ws://{address}/.ws?v=5&s={session}&ns={namespace}") as socket:
        assert json.loads(socket.recv(timeout=SECONDS_MAX)) == {"t": "c", "d": {"t": "r", "d": address}}
    assert page.ask(1, "p", {"p": "/a", "d": 1})["s"] == "ok"


def test_pages_and_sockets_see_each_other(address: str, namespace: str, page: Poller) -> None:
    with Wire(address, namespace) as wire:
        assert page.ask(1, "q", {"p": "/", "h": ""})["s"] == "ok"
        page.pushes()
        wire.ok("p", {"p": "/x", "d": 1})
        page.poll()
        assert page.pushes() == [{"a": "d", "b": {"p": "x", "d": 1}}]


def test_a_server_that_ends_tells_pages_and_does_what_was_to_be_done(tmp_path: Path) -> None:
    binary = os.environ.get("HEARTH_BINARY")
    if not binary:
        pytest.skip("HEARTH_BINARY does not name the server's binary")
    port = free_port()
    command = [binary, "serve", "--host", "127.0.0.1", "--port", str(port), "--data", str(tmp_path)]
    # If it waited for the request, it would be killed, and what was to be done would not be done.
    command += ["--grace", str(2 * PATIENCE)]
    with running(command, port) as started:
        page = Poller(started, "end")
        assert page.ask(1, "o", {"p": "/gone", "d": True})["s"] == "ok"
        waiting = threading.Thread(target=page.poll)
        waiting.start()
        time.sleep(0.3)
    waiting.join(PATIENCE)
    assert page.closed_after == page.number - 1
    with running(command, port) as started:
        tree = Tree(started, "end")
        assert tree.get("/gone") is True
        tree.close()
