"""The user of requests: sessions, tokens that are broken or forged, and a server for production."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import grpc
import pytest

from endtoend.channels import Bare
from endtoend.people import Person, Site, fields, is_denied, query, rule, value
from endtoend.user_streams import PERMISSION_DENIED, refusal, told
from support.patience import PATIENCE
from support.program import BINARY, Program, program
from support.streams import Listen, Stream, WriteRequest
from support.tokens import encoded, unsigned
from support.webchannel import WebListen
from support.ways import Http1

# WebChannel sessions


@pytest.mark.emulator_differs("its sessions are its own")
def test_session_ids_cannot_be_guessed(site: Site) -> None:
    site.rules(rule("c/{x}", "read: if request.auth.uid == 'alice'"))
    way = Http1(site.address)
    ids = []
    for number in range(20):
        bare = Bare(way, site.project, headers={"Authorization": f"Bearer {unsigned('alice')}"})
        bare.begin(bare.added(2))
        ids.append(bare.session_id)
    assert len(set(ids)) == 20 and min(len(one) for one in ids) >= 20
    # No part of one token reveals another; the last character may have two bits only.
    places = range(min(len(one) for one in ids))
    assert sum(len({one[place] for one in ids}) > 5 for place in places) >= 16, ids
    known = ids[0]
    other = known[:-1] + ("a" if known[-1] != "a" else "b")
    for guess in (known[:-1], known + "x", other, known.swapcase(), known[::-1]):
        target = f"{bare.path}?VER=8&database={bare.database}&SID={guess}&RID=rpc&AID=0&CI=1&TYPE=xmlhttp&t=1"
        answer = way.send("GET", target)
        assert answer.status == 400 and "Unknown SID" in answer.text
    way.close()


@pytest.mark.emulator_differs("its sessions are its own")
def test_a_session_stays_its_users(site: Site) -> None:
    """Later requests cannot change the rights, with any content, and neither can those of others."""
    site.rules(rule("c/{x}", "read: if request.auth.uid == 'alice'"), rule("d/{x}", "read"))
    site.set("c/a", n=1)
    way = Http1(site.address)
    bob = Bare(way, site.project, headers={"Authorization": f"Bearer {unsigned('bob')}"})
    bob.begin(bob.added(2, "d"))
    bob.send(bob.added(4, "c"))
    owner = "headers=Authorization%3ABearer%20owner%0D%0A"
    message = json.dumps(bob.added(6, "c"))
    body = f"{owner}&count=1&ofs=2&req0___data__={quote(message)}".encode()
    answer = bob.post(body)
    assert answer.status in (200, 400)
    if answer.status == 200:
        bob._sent += 1
    # Also as a header, and in the URL.
    text = json.dumps(bob.added(8, "c"))
    target = (
        f"{bob.path}?{bob.of_session()}&RID={bob._take_number()}&AID=0&t=1"
        f"&%24httpHeaders=Authorization%3ABearer%20owner%0D%0A"
    )
    form = f"count=1&ofs={bob._sent}&req0___data__={quote(text)}".encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": "Bearer owner"}
    assert way.send("POST", target, form, headers).status == 200
    said = bob.get(0)
    refused = set()
    while len(refused) < (3 if answer.status == 200 else 2):
        for _, (content,) in said.told(1):
            assert "documentChange" not in content, content
            change = content.get("targetChange", {})
            if change.get("targetChangeType") == "REMOVE":
                assert change["cause"]["code"] == PERMISSION_DENIED
                refused |= set(change["targetIds"])
    assert 4 in refused and 8 in refused
    bob.leave()


@pytest.mark.emulator_differs("its sessions are its own")
def test_a_session_of_nobody_and_of_a_forger(site: Site) -> None:
    site.rules(rule("c/{x}", "read: if request.auth != null"))
    for headers in ({}, {"Authorization": ""}, {"authorization ": "Bearer owner"}, {"X-Authorization": "Bearer owner"}):
        stream = WebListen(site.address, site.project, headers=headers)
        stream.add_query(2, "c")
        assert told(refusal(stream, 2)) == []
        stream.cancel()
    for token in ("Basic b3duZXI=", "Bearer a.b.c", "owner"):
        stream = WebListen(site.address, site.project, headers={"Authorization": token})
        stream.add_query(2, "c")
        with pytest.raises(grpc.RpcError) as caught:
            stream.take()
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        stream.cancel()


# Tokens


def broken_tokens() -> Iterator[tuple[str, str]]:
    head, payload = encoded({"alg": "none"}), encoded({"sub": "alice"})
    yield "two parts", f"{head}.{payload}"
    yield "four parts", f"{head}.{payload}..x"
    yield "dots", ".."
    yield "an empty payload", f"{head}.."
    yield "no base64", f"{head}.****."
    yield "a header that is none", f"{encoded(b'null')}.{payload}."
    contents = {
        "no JSON": b"hello",
        "an array": b"[]",
        "cut short": b'{"sub": "alice"',
        "more behind": b'{"sub": "alice"} x',
        "no UTF-8": b'{"sub": "\xff\xfe"}',
        "a lone surrogate": b'{"sub": "\\ud800"}',
        "nested deeply": b'{"sub":"alice","x":' + b"[" * 5000 + b"]" * 5000 + b"}",
        "no subject": b"{}",
        "an empty subject": b'{"sub": ""}',
        "a number as subject": b'{"sub": 5}',
        "null as subject": b'{"sub": null}',
    }
    for name, content in contents.items():
        yield name, f"{head}.{encoded(content)}."


def test_broken_tokens(site: Site, over_rest: bool, is_emulator: bool) -> None:
    site.rules(rule("c/{x}", "read: if request.auth.uid == 'alice'"))
    site.set("c/a", n=1)
    assert site.person("alice", over_rest).get("c/a").good
    for name, token in broken_tokens():
        answer = Person(site, token, over_rest).get("c/a")
        assert not answer.good and not answer.body, name
        if not is_emulator and name != "nested deeply":
            assert answer.code == "UNAUTHENTICATED", (name, answer)
    assert site.person("alice", over_rest).get("c/a").good


@pytest.mark.emulator_differs("it takes what it likes")
def test_oversized_tokens(site: Site, over_rest: bool) -> None:
    """A token of a few kilobytes is not too large; one of a megabyte fails without an effect."""
    site.rules(rule("c/{x}", "read: if request.auth.uid == 'alice' && request.auth.token.x.size() > 1"))
    site.set("c/a", n=1)
    assert site.person("alice", over_rest, x="y" * 4000).get("c/a").good
    for size in (100_000, 1_000_000):
        token = unsigned("alice", x="y" * size)
        if over_rest:
            host, port = site.address.rsplit(":", 1)
            with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
                head = f"GET /v1/{site.name('c/a')} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
                try:
                    connection.sendall(head.encode())
                    status = connection.recv(100)
                except OSError:
                    status = b""
            assert b" 200 " not in status
        else:
            assert not Person(site, token).get("c/a").good
    assert site.person("alice", over_rest, x="yy").get("c/a").good


@pytest.mark.emulator_differs("it takes what it likes")
def test_two_authorizations(site: Site) -> None:
    """A request that a proxy assigns to the user must not act as another user."""
    site.rules(rule("c/{x}", "read: if request.auth.uid == 'alice'"))
    site.set("c/a", n=1)
    host, port = site.address.rsplit(":", 1)
    bob, alice = (f"Authorization: Bearer {unsigned(uid)}\r\n" for uid in ("bob", "alice"))
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(f"GET /v1/{site.name('c/a')} HTTP/1.1\r\nHost: x\r\n{bob}{alice}\r\n".encode())
        assert b" 200 " not in connection.recv(100)


# A server for production


SECRET = b"0123456789abcdef0123456789abcdef"
CREDENTIAL = "credential-of-the-backup-0123456789"
WRITER = "credential-of-the-writer-0123456789"

PRODUCTION = {
    "emulator": False,
    "rules": "firestore.rules",
    "auth": {
        "keys": [{"id": "1", "secretFile": "token.secret"}],
        "credentials": [
            {"name": "backup", "secretFile": "backup.secret", "scope": "read-only"},
            {"name": "writer", "secretFile": "writer.secret", "project": "demo-one"},
        ],
    },
}


def signed(claims: dict[str, Any], secret: bytes = SECRET, **head: Any) -> str:
    text = f"{encoded({'alg': 'HS256', 'kid': '1', **head})}.{encoded(claims)}"
    return f"{text}.{encoded(hmac.digest(secret, text.encode(), hashlib.sha256))}"


def claims(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    made = {"iss": "hearth", "sub": "alice", "iat": now, "exp": now + 600, **changes}
    return {name: one for name, one in made.items() if one is not None}


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, Path]]:
    if not BINARY:
        pytest.skip("HEARTH_BINARY does not name the server's binary")
    folder = tmp_path_factory.mktemp("production")
    (folder / "hearth.json").write_text(json.dumps(PRODUCTION))
    (folder / "firestore.rules").write_text(
        "rules_version = '2';\nservice cloud.firestore { match /databases/{db}/documents {\n"
        "match /users/{user} { allow read, write: if request.auth.uid == user; } } }\n"
    )
    for name, secret in (("token", SECRET.decode()), ("backup", CREDENTIAL), ("writer", WRITER)):
        (folder / f"{name}.secret").write_text(secret)
        (folder / f"{name}.secret").chmod(0o600)
    with program(folder, "--memory", "--project", "demo-one") as running:
        yield running, folder


@pytest.fixture
def guarded(production: tuple[Program, Path]) -> Iterator[Site]:
    made = Site(production[0].address, "demo-one")
    yield made
    made.close()


def test_signed_tokens(guarded: Site, over_rest: bool) -> None:
    alice = Person(guarded, signed(claims()), over_rest)
    assert alice.update("users/alice", n=1).good and alice.get("users/alice").good
    denied = alice.get("users/bob")
    assert is_denied(denied) and denied.message == "Missing or insufficient permissions."
    for token in (None, signed(claims(sub="bob"))):
        denied = Person(guarded, token, over_rest).get("users/alice")
        assert is_denied(denied) and denied.message == "Missing or insufficient permissions."
    # No rules for this: closed.
    other = Person(Site(guarded.address, "demo-one"), signed(claims()), over_rest)
    other.site.database = "projects/demo-one/databases/other"
    assert is_denied(other.get("users/alice"))
    other.site.close()


def forged_tokens() -> Iterator[tuple[str, str]]:
    now = int(time.time())
    for name, token in broken_tokens():
        yield name, token
    yield "owner", "owner"
    yield "an access token", "ya29.abc"
    yield "nothing", "x"
    yield "unsigned", unsigned("alice", iss="hearth", exp=now + 600)
    for algorithm in ("none", "None", "NONE", "", "HS512", "RS256", "ES256"):
        yield f"algorithm {algorithm}", signed(claims(), alg=algorithm)
        yield f"unsigned, algorithm {algorithm}", signed(claims(), alg=algorithm).rsplit(".", 1)[0] + "."
    good = signed(claims())
    yield "another secret", signed(claims(), secret=b"x" * 32)
    yield "an empty secret", signed(claims(), secret=b"")
    yield "no signature", good.rsplit(".", 1)[0] + "."
    yield "a signature cut short", good[:-4]
    yield "a longer signature", good + "AAAA"
    head, _, signature = good.split(".")
    yield "other claims", f"{head}.{encoded(claims(sub='eve'))}.{signature}"
    yield "expired", signed(claims(exp=now - 120))
    yield "without expiry", signed(claims(exp=None))
    yield "an expiry that is no number", signed(claims(exp="never"))
    yield "of the future", signed(claims(iat=now + 900))
    yield "not yet", signed(claims(nbf=now + 900))
    yield "of another issuer", signed(claims(iss="somebody"))
    yield "of no issuer", signed(claims(iss=None))
    yield "of another key", signed(claims(), kid="2")
    yield "without subject", signed(claims(sub=None))
    yield "with an empty subject", signed(claims(sub=""))
    yield "critical extension", signed(claims(), crit=["exp"], b64=False)
    yield "a key of its own", signed(claims(), secret=b"k", jwk={"kty": "oct", "k": encoded(b"k")})


def test_forged_tokens(guarded: Site, over_rest: bool) -> None:
    for name, token in forged_tokens():
        answer = Person(guarded, token, over_rest).update("users/alice", n=666)
        assert answer.code in ("UNAUTHENTICATED", "PERMISSION_DENIED"), (name, answer)
        assert not answer.body
    seen = Person(guarded, signed(claims()), over_rest).get("users/alice").body
    assert seen is None or seen["fields"]["n"] != value(666)


def test_credentials_of_administrators(guarded: Site, over_rest: bool) -> None:
    reader, writer = Person(guarded, CREDENTIAL, over_rest), Person(guarded, WRITER, over_rest)
    assert writer.update("c/a", n=1).good
    assert reader.get("c/a").good and reader.run(query("c")).good
    assert reader.ask("ListCollectionIds", {"parent": guarded.name("")}).good
    for answer in (
        reader.update("c/a", n=2),
        reader.delete("c/a"),
        reader.commit(guarded.written("c/a", n=2)),
        reader.commit(),
        reader.ask("BatchWrite", {"database": guarded.database, "writes": [guarded.written("c/a", n=2)]}),
    ):
        assert is_denied(answer)
    elsewhere = Site(guarded.address, "demo-two")
    assert is_denied(Person(elsewhere, WRITER, over_rest).get("c/a"))
    assert is_denied(Person(elsewhere, WRITER, over_rest).update("c/a", n=1))
    assert is_denied(Person(elsewhere, WRITER, over_rest).ask("ListCollectionIds", {"parent": elsewhere.name("")}))
    for wrong in (WRITER[:-1], WRITER + "x", WRITER.upper(), CREDENTIAL[:-1]):
        assert Person(guarded, wrong, over_rest).get("c/a").code == "UNAUTHENTICATED"
    elsewhere.close()
    assert reader.get("c/a").body["fields"] == fields({"n": 1})


def test_what_is_for_local_development_is_not_there(guarded: Site) -> None:
    content = "service cloud.firestore { match /{all=**} { allow read, write; } }"
    open_rules = {"rules": {"files": [{"content": content}]}}
    for headers in ({}, {"Authorization": f"Bearer {signed(claims())}"}, {"Authorization": "Bearer owner"}):
        for method, path, body in (
            ("PUT", "/emulator/v1/projects/demo-one:securityRules", open_rules),
            ("DELETE", "/emulator/v1/projects/demo-one/databases/(default)/documents", None),
            ("POST", "/shutdown", None),
        ):
            status, _ = guarded.send(method, path, body, headers)
            assert status in (401, 403, 404, 405), (method, path, status)
    assert is_denied(Person(guarded, None, True).get("users/alice"))


def test_rules_files_are_read_again(production: tuple[Program, Path], guarded: Site, channel: grpc.Channel) -> None:
    """Listeners lose their rights by new rules, too; broken rules change nothing."""
    _, folder = production
    path = folder / "firestore.rules"
    before = path.read_text()
    alice = Person(guarded, signed(claims()))
    assert alice.update("users/alice", n=1).good
    with grpc.insecure_channel(guarded.address) as own:
        stream = Listen(own, guarded.project, authorization=f"Bearer {signed(claims())}")
        stream.add_documents(2, "users/alice")
        stream.snapshot()
        try:
            path.write_text(before.replace("allow read, write", "allow read, write, nothing:::"))
            time.sleep(2.5)
            assert alice.get("users/alice").good
            path.write_text(before.replace("allow read, write:", "allow write:"))
            assert told(refusal(stream, 2)) == []
            assert is_denied(alice.get("users/alice")) and alice.update("users/alice", n=2).good
        finally:
            path.write_text(before)
            stream.cancel()
    deadline = time.monotonic() + PATIENCE
    while not alice.get("users/alice").good:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_stream_ends_when_its_token_does(guarded: Site) -> None:
    # Accepted for a minute after its expiry, because clocks differ.
    token = signed(claims(exp=int(time.time()) + 2 - 60))
    with grpc.insecure_channel(guarded.address) as own:
        listener = Listen(own, guarded.project, authorization=f"Bearer {token}")
        listener.add_documents(2, "users/alice")
        listener.snapshot()
        writer = Stream(own, "Write", authorization=f"Bearer {token}")
        writer.send(WriteRequest(database=guarded.database))
        writer.take()
        for stream in (listener, writer):
            with pytest.raises(grpc.RpcError) as caught:
                while stream.take() is not None:
                    pass
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
