"""Authentication: tokens of issuers that the server trusts, keys of its own, credentials of administrators."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.server
import itertools
import json
import secrets
import string
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from support.patience import PATIENCE
from support.program import BINARY, Program, program
from support.wire import METHODS, parse

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

RULES = """
rules_version = '2';
service cloud.firestore {
  match /databases/{db}/documents {
    match /users/{uid} { allow read, write: if request.auth.uid == uid; }
    match /admin/{d} { allow read, write: if request.auth.token.role == 'admin' && request.auth.token.level > 3; }
    match /public/{d} { allow read: if request.auth == null; }
  }
}
"""
ROOT = "projects/p/databases/(default)/documents"
SECRET = secrets.token_urlsafe(40)
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
P256 = ec.generate_private_key(ec.SECP256R1())


def public_pem(key: Any) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def jwk(key: Any, kid: str, **more: Any) -> dict[str, Any]:
    numbers = key.public_key().public_numbers()

    def text(number: int, size: int) -> str:
        return base64.urlsafe_b64encode(number.to_bytes(size, "big")).rstrip(b"=").decode()

    if isinstance(key, rsa.RSAPrivateKey):
        return {"kty": "RSA", "kid": kid, "use": "sig", "n": text(numbers.n, 256), "e": text(numbers.e, 3), **more}
    return {"kty": "EC", "crv": "P-256", "kid": kid, "x": text(numbers.x, 32), "y": text(numbers.y, 32), **more}


def claims(**more: Any) -> dict[str, Any]:
    now = int(time.time())
    return {"iss": "https://id.example", "aud": "app", "sub": "alice", "iat": now, "exp": now + 600, **more}


def signed(content: dict[str, Any], key: Any = RSA, algorithm: str = "RS256", kid: str | None = "a") -> str:
    return jwt.encode(content, key, algorithm, headers={"kid": kid} if kid else None)


@dataclass
class Keys:
    """A server of key sets."""

    keys: list[dict[str, Any]] = field(default_factory=list)
    asked: int = 0
    hangs: bool = False
    port: int = 0


@contextmanager
def key_server() -> Iterator[Keys]:
    keys = Keys()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys.asked += 1
            if keys.hangs:
                time.sleep(30)
            body = json.dumps({"keys": keys.keys}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    keys.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield keys
    finally:
        server.shutdown()


@pytest.fixture
def keys() -> Iterator[Keys]:
    with key_server() as served:
        served.keys = [jwk(RSA, "a"), jwk(P256, "e"), {"kty": "oct", "k": "c2VjcmV0", "kid": "o"}]
        yield served


@pytest.fixture
def server(tmp_path: Path, keys: Keys) -> Iterator[Program]:
    (tmp_path / "firestore.rules").write_text(RULES)
    (tmp_path / "token.secret").write_text(SECRET + "\n")
    (tmp_path / "public.pem").write_bytes(public_pem(OTHER_RSA))
    (tmp_path / "owner.secret").write_text("owner-" + SECRET)
    (tmp_path / "reader.secret").write_text("reader-" + SECRET)
    auth = {
        "issuers": [
            {"issuer": "https://id.example", "audience": "app", "jwks": f"http://127.0.0.1:{keys.port}/keys", "project": "p"}
        ],
        "keys": [{"id": "own", "secretFile": "token.secret"}, {"publicKeyFile": "public.pem", "issuer": "backend"}],
        "credentials": [
            {"name": "owner", "secretFile": "owner.secret"},
            {"name": "reader", "secretFile": "reader.secret", "scope": "read-only", "project": "p"},
        ],
    }
    (tmp_path / "hearth.json").write_text(json.dumps({"auth": auth}))
    with program(tmp_path, "--no-emulator", "--memory", "--project", "p") as running:
        yield running


def call(server: Program, method: str, body: dict[str, Any], token: str | None) -> grpc.StatusCode:
    with grpc.insecure_channel(server.address) as channel:
        kind = METHODS[method]
        make = channel.unary_stream if kind.streams else channel.unary_unary
        stub = make(
            kind.path,
            request_serializer=kind.request.SerializeToString,
            response_deserializer=kind.response.FromString,
        )
        metadata = [("authorization", f"Bearer {token}")] if token is not None else []
        try:
            answer = stub(parse(kind, body), metadata=metadata, timeout=PATIENCE)
            if kind.streams:
                list(answer)
        except grpc.RpcError as error:
            return error.code()
    return grpc.StatusCode.OK


def get(server: Program, path: str, token: str | None) -> grpc.StatusCode:
    return call(server, "GetDocument", {"name": f"{ROOT}/{path}"}, token)


OK, NOT_FOUND = grpc.StatusCode.OK, grpc.StatusCode.NOT_FOUND
DENIED, REFUSED = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED


def test_an_issuers_tokens(server: Program, keys: Keys) -> None:
    assert get(server, "users/alice", signed(claims())) is NOT_FOUND
    assert get(server, "users/alice", signed(claims(), P256, "ES256", "e")) is NOT_FOUND
    assert get(server, "users/bob", signed(claims())) is DENIED
    assert get(server, "users/alice", signed(claims(aud=["other", "app"]))) is NOT_FOUND
    assert get(server, "admin/x", signed(claims(role="admin", level=4))) is NOT_FOUND
    assert get(server, "admin/x", signed(claims(role="admin", level=3))) is DENIED
    assert get(server, "public/x", None) is NOT_FOUND
    assert get(server, "users/alice", None) is DENIED
    assert keys.asked == 1


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(lambda: signed(claims(), OTHER_RSA), id="another key"),
        pytest.param(lambda: signed(claims(exp=int(time.time()) - 120)), id="expired"),
        pytest.param(lambda: signed({k: v for k, v in claims().items() if k != "exp"}), id="without expiry"),
        pytest.param(lambda: signed(claims(iat=int(time.time()) + 3600)), id="of the future"),
        pytest.param(lambda: signed(claims(nbf=int(time.time()) + 3600)), id="not yet"),
        pytest.param(lambda: signed(claims(aud="other")), id="another audience"),
        pytest.param(lambda: signed({k: v for k, v in claims().items() if k != "aud"}), id="no audience"),
        pytest.param(lambda: signed(claims(iss="https://evil.example")), id="another issuer"),
        pytest.param(lambda: signed(claims(iss="backend")), id="an issuer with another key"),
        pytest.param(lambda: signed(claims(sub="")), id="without subject"),
        pytest.param(lambda: signed(claims(sub=5, user_id="alice")), id="a number as subject"),
        pytest.param(lambda: signed(claims(aud=["app", 5])), id="a number as audience"),
        pytest.param(lambda: signed(claims(exp=10**300)), id="endless"),
        pytest.param(lambda: signed(claims(exp=1e300)), id="endless in another form"),
        pytest.param(lambda: signed(claims(iat=-1)), id="before 1970"),
        pytest.param(lambda: signed(claims(auth_time="now")), id="a string as time"),
        pytest.param(lambda: own('{"alg":"HS256","alg":"HS256"}'), id="two algorithms"),
        pytest.param(lambda: own('{"alg":"HS256","kid":5}'), id="a number as key ID"),
        pytest.param(lambda: own('{"alg":"HS256","crit":["b64"],"b64":false}'), id="critical extensions"),
        pytest.param(lambda: own('{"alg":"none"}'), id="signed without an algorithm"),
        pytest.param(lambda: own('{"alg":"hs256"}'), id="an algorithm in lower case"),
        pytest.param(lambda: own(more=',"sub":"bob"'), id="two subjects"),
        pytest.param(lambda: own(more=',"a":{"b":1,"b":2}'), id="a duplicate in a claim"),
        pytest.param(lambda: own(HEADER + "{}"), id="two headers"),
        pytest.param(lambda: own() + "=", id="padding behind the signature"),
        pytest.param(lambda: own().replace(".", " .", 1), id="white space behind the header"),
        pytest.param(lambda: " " + own(), id="white space before it"),
        pytest.param(lambda: own().replace(".", "=.", 1), id="padding behind the header"),
        pytest.param(lambda: own(change=loose), id="bits behind the signature"),
        pytest.param(lambda: own(change=lambda text: text.replace("-", "+").replace("_", "/")), id="the other alphabet"),
        pytest.param(lambda: signed(claims(), kid="unknown"), id="unknown key"),
        pytest.param(lambda: jwt.encode(claims(), None, "none"), id="unsigned"),
        pytest.param(lambda: confused(public_pem(RSA)), id="RSA key as secret"),
        pytest.param(lambda: confused(b""), id="empty secret"),
        pytest.param(lambda: signed(claims())[:-4], id="cut"),
        pytest.param(lambda: signed(claims()) + "A", id="prolonged"),
        pytest.param(lambda: signed(claims(fill="x" * 20_000)), id="oversized"),
        pytest.param(lambda: "a.b.c", id="no token"),
        pytest.param(lambda: "owner", id="owner"),
        pytest.param(lambda: "..", id="dots"),
        pytest.param(lambda: tampered(), id="other claims"),
    ],
)
def test_what_is_not_believed(server: Program, token: Any) -> None:
    assert get(server, "users/alice", token()) is REFUSED
    assert get(server, "public/x", token()) is REFUSED


def confused(key: bytes) -> str:
    """Signed with HMAC, by a public key that everybody knows."""
    def part(content: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()

    text = part({"alg": "HS256", "typ": "JWT", "kid": "a"}) + "." + part(claims())
    digest = hmac.new(key, text.encode(), hashlib.sha256).digest()
    return text + "." + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


HEADER = '{"alg":"HS256","typ":"JWT"}'


def own(header: str = HEADER, more: str = "", change: Any = None) -> str:
    """A token of the server's own key, written by hand; `change` is made to its signature."""

    def part(of: bytes) -> str:
        return base64.urlsafe_b64encode(of).rstrip(b"=").decode()

    # A signature that has a character in which the alphabets differ.
    for number in itertools.count():
        payload = f'{{"iss":"hearth","sub":"alice","exp":{int(time.time()) + 600},"n":{number}{more}}}'
        text = part(header.encode()) + "." + part(payload.encode())
        signature = part(hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).digest())
        if {"-", "_"} & set(signature):
            return text + "." + (change(signature) if change else signature)
    raise AssertionError


def loose(signature: str) -> str:
    """The same bytes: the last character has bits that belong to none."""
    alphabet = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
    return signature[:-1] + alphabet[alphabet.index(signature[-1]) + 1]


def test_a_token_that_is_written_by_hand(server: Program) -> None:
    assert get(server, "users/alice", own()) is NOT_FOUND
    assert get(server, "users/alice", own(' { "alg" : "HS256" } ')) is NOT_FOUND


def tampered() -> str:
    head, _, signature = signed(claims()).split(".")
    body = base64.urlsafe_b64encode(json.dumps(claims(role="admin")).encode()).rstrip(b"=").decode()
    return f"{head}.{body}.{signature}"


def test_keys_are_fetched_again_when_one_is_new_but_not_for_every_token(server: Program, keys: Keys) -> None:
    assert get(server, "users/alice", signed(claims())) is NOT_FOUND
    for number in range(20):
        assert get(server, "users/alice", signed(claims(), kid=f"made up {number}")) is REFUSED
    assert keys.asked <= 2


def test_a_key_server_that_hangs_keeps_nobody_else(server: Program, keys: Keys) -> None:
    keys.hangs = True
    codes: list[grpc.StatusCode] = []
    waiting = threading.Thread(target=lambda: codes.append(get(server, "users/alice", signed(claims()))))
    waiting.start()
    for _ in range(20):
        assert get(server, "public/x", None) is NOT_FOUND
    assert not codes
    waiting.join(PATIENCE)
    assert codes == [grpc.StatusCode.UNAVAILABLE]


def test_tokens_of_ones_own(server: Program, tmp_path: Path) -> None:
    def mint(*words: str) -> str:
        run = subprocess.run([BINARY, "token", "mint", *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        return run.stdout.strip()

    token = mint("--uid", "alice", "--secret", "token.secret", "--ttl", "1h", "--claim", "role=admin,level=5")
    assert get(server, "users/alice", token) is NOT_FOUND
    assert get(server, "admin/x", token) is NOT_FOUND
    assert get(server, "users/bob", token) is DENIED
    (tmp_path / "private.pem").write_bytes(
        OTHER_RSA.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    token = mint("--uid", "bob", "--key", "private.pem", "--issuer", "backend")
    assert get(server, "users/bob", token) is NOT_FOUND
    assert jwt.decode(token, public_pem(OTHER_RSA), ["RS256"])["sub"] == "bob"
    (tmp_path / "other.secret").write_text(secrets.token_urlsafe(40))
    assert get(server, "users/alice", mint("--uid", "alice", "--secret", "other.secret")) is REFUSED
    wrong = subprocess.run([BINARY, "token", "mint", "--uid", "a"], cwd=tmp_path, capture_output=True, text=True)
    assert wrong.returncode == 64


def test_administrators(server: Program) -> None:
    owner, reader = "owner-" + SECRET, "reader-" + SECRET
    write = {
        "database": "projects/p/databases/(default)",
        "writes": [{"update": {"name": f"{ROOT}/any/thing", "fields": {}}}],
    }
    assert call(server, "Commit", write, owner) is OK
    assert get(server, "any/thing", owner) is OK
    assert get(server, "any/thing", reader) is OK
    assert call(server, "Commit", write, reader) is DENIED
    assert call(server, "ListCollectionIds", {"parent": ROOT}, reader) is OK
    assert call(server, "ListCollectionIds", {"parent": ROOT}, signed(claims())) is DENIED
    elsewhere = ROOT.replace("projects/p", "projects/q")
    assert call(server, "GetDocument", {"name": f"{elsewhere}/any/thing"}, reader) is DENIED
    assert call(server, "GetDocument", {"name": f"{elsewhere}/any/thing"}, owner) is NOT_FOUND
    assert get(server, "any/thing", owner + "x") is REFUSED


def test_what_only_local_development_has(server: Program) -> None:
    assert server.send("DELETE", "/emulator/v1/projects/p/databases/(default)/documents")[0] == 404
    assert server.send("PUT", "/emulator/v1/projects/p:securityRules", {})[0] == 404
    assert server.send("POST", "/shutdown")[0] == 404
    assert server.send("GET", "/healthz")[0] == 200


def test_without_rules_only_administrators_pass(tmp_path: Path) -> None:
    with program(tmp_path, "--no-emulator", "--memory") as running:
        assert get(running, "public/x", None) is DENIED
        assert get(running, "public/x", "owner") is REFUSED


def test_only_those_who_may_make_databases(tmp_path: Path) -> None:
    (tmp_path / "firestore.rules").write_text(
        "rules_version = '2'; service cloud.firestore { match /databases/{db}/documents { match /{d=**} "
        "{ allow read, write; } } }"
    )
    (tmp_path / "owner.secret").write_text("owner-" + SECRET)
    (tmp_path / "reader.secret").write_text("reader-" + SECRET)
    credentials = [
        {"name": "owner", "secretFile": "owner.secret"},
        {"name": "reader", "secretFile": "reader.secret", "scope": "read-only"},
    ]
    (tmp_path / "hearth.json").write_text(json.dumps({"auth": {"credentials": credentials}}))

    def every_way(running: Program, project: str, token: str | None) -> set[grpc.StatusCode]:
        database = f"projects/{project}/databases/(default)"
        write = {"update": {"name": f"{database}/documents/c/x"}}
        query = {"structuredQuery": {"from": [{"collectionId": "c"}]}}
        documents = f"{database}/documents"
        return {
            call(running, "GetDocument", {"name": f"{documents}/c/x"}, token),
            call(running, "BatchGetDocuments", {"database": database, "documents": [f"{documents}/c/x"]}, token),
            call(running, "RunQuery", {"parent": documents, **query}, token),
            call(running, "RunAggregationQuery", {"parent": documents, "structuredAggregationQuery": {
                **query, "aggregations": [{"count": {}, "alias": "n"}]}}, token),
            call(running, "PartitionQuery", {"parent": documents, "partitionCount": 2, "structuredQuery": {
                "from": [{"collectionId": "c", "allDescendants": True}], "orderBy": [
                    {"field": {"fieldPath": "__name__"}, "direction": "ASCENDING"}]}}, token),
            call(running, "ListDocuments", {"parent": documents, "collectionId": "c"}, token),
            call(running, "ListCollectionIds", {"parent": documents}, token),
            call(running, "Commit", {"database": database, "writes": [write]}, token),
            call(running, "BatchWrite", {"database": database, "writes": [write]}, token),
            call(running, "BeginTransaction", {"database": database}, token),
            call(running, "CreateDocument", {"parent": documents, "collectionId": "c", "document": {}}, token),
            call(running, "UpdateDocument", {"document": {"name": f"{documents}/c/x"}}, token),
            call(running, "DeleteDocument", {"name": f"{documents}/c/x"}, token),
        }

    data = tmp_path / "data"
    with program(tmp_path, "--no-emulator", "--data", str(data), "--project", "mine") as running:
        # Aggregations and partitions have separate authorization; they do not create a database either.
        assert every_way(running, "foreign", None) <= {NOT_FOUND, DENIED}
        assert every_way(running, "foreign", "reader-" + SECRET) <= {NOT_FOUND, DENIED}
        assert not [file for file in data.rglob("*") if "foreign" in file.name]
        assert call(running, "Commit", {"database": "projects/mine/databases/(default)"}, None) is OK
        assert call(running, "Commit", {"database": "projects/mine/databases/other"}, None) is DENIED
        # Nor does a commit that changes nothing; the first write does.
        first = {"update": {"name": "projects/foreign/databases/(default)/documents/c/first"}}
        assert call(running, "Commit", {"database": "projects/foreign/databases/(default)", "writes": [first]},
                    "owner-" + SECRET) is OK
        assert call(running, "Commit", {"database": "projects/foreign/databases/(default)"}, None) is OK
        assert [file for file in data.rglob("*") if "foreign" in file.name]
        assert not [file for file in data.rglob("*") if "other" in file.name]


def test_rules_files_are_read_again(tmp_path: Path) -> None:
    def rules(condition: str) -> str:
        return (
            "rules_version = '2'; service cloud.firestore { match /databases/{db}/documents { match /{d=**} "
            f"{{ allow read: if {condition}; }} }} }}"
        )

    file = tmp_path / "firestore.rules"
    file.write_text(rules("true"))
    running = Program(tmp_path, "--no-emulator", "--memory", "--project", "p")
    try:
        assert get(running, "c/x", None) is NOT_FOUND
        file.write_text(rules("false"))
        wait_for(lambda: get(running, "c/x", None) is DENIED)
        # A broken file changes nothing.
        file.write_text(rules("true") + "}")
        time.sleep(5)
        assert get(running, "c/x", None) is DENIED
        file.write_text(rules("true"))
        wait_for(lambda: get(running, "c/x", None) is NOT_FOUND)
    finally:
        code, log = running.terminate()
    assert code == 0
    assert "the rules are broken" in log


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_broken_rules_file_lets_no_server_start(tmp_path: Path) -> None:
    (tmp_path / "firestore.rules").write_text("service cloud.firestore {\n  match /a {\n}\n")
    process = Program.spawn(tmp_path, "--memory")
    _, log = process.communicate(timeout=PATIENCE)
    assert process.returncode == 78
    assert "firestore.rules:" in log
