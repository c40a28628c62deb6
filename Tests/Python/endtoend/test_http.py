"""HTTP around the API: readiness, clearing, CORS, both versions of HTTP on one port."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess

import pytest

from endtoend.rest import Rest
from support.patience import PATIENCE

ONE = {"n": {"integerValue": "1"}}


def test_readiness(rest: Rest) -> None:
    answer = rest.send("GET", "/")
    assert answer.status == 200
    assert answer.content.strip().lower() == b"ok"


def test_clearing_a_database(rest: Rest) -> None:
    rest.put("c/a", ONE)
    rest.put("c/a/s/b", ONE)
    rest.send("PATCH", f"/v1/projects/{rest.project}/databases/other/documents/c/a", {"fields": ONE})
    answer = rest.send("DELETE", f"/emulator/v1/{rest.database}/documents")
    assert (answer.status, answer.json) == (200, {})
    assert rest.get("c/a").status == 404
    assert rest.call("listCollectionIds", {}).json == {}
    assert rest.send("GET", f"/v1/projects/{rest.project}/databases/other/documents/c/a").status == 200


class TestCors:
    ORIGIN = {"Origin": "http://localhost:5173"}

    def test_preflight(self, rest: Rest) -> None:
        headers = {
            **self.ORIGIN,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type,x-goog-api-client",
        }
        answer = rest.send("OPTIONS", f"/v1/{rest.root}:commit", headers=headers)
        assert answer.status in (200, 204)
        assert answer.headers["access-control-allow-origin"] in ("*", self.ORIGIN["Origin"])
        assert "POST" in answer.headers["access-control-allow-methods"]
        allowed = {name.strip().lower() for name in answer.headers["access-control-allow-headers"].split(",")}
        assert "*" in allowed or {"authorization", "content-type", "x-goog-api-client"} <= allowed

    @pytest.mark.parametrize("path", ["c/a", "c/none"])
    def test_answers_name_the_origin(self, rest: Rest, path: str) -> None:
        rest.put("c/a", ONE)
        answer = rest.send("GET", f"/v1/{rest.name(path)}", headers=self.ORIGIN)
        assert answer.headers["access-control-allow-origin"] in ("*", self.ORIGIN["Origin"])


class TestHttp1:
    def test_keep_alive(self, rest: Rest) -> None:
        for n in range(50):
            assert rest.put("c/a", {"n": {"integerValue": str(n)}}).status == 200

    @pytest.mark.emulator_differs("it does not answer pipelined requests in one piece")
    def test_pipelined_requests_are_answered_in_order(self, address: str, project: str) -> None:
        host, port = address.rsplit(":", 1)
        lines = [
            f"GET /v1/projects/{project}/databases/(default)/documents/c/{n} HTTP/1.1\r\nHost: x\r\n\r\n" for n in "abc"
        ]
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall("".join(lines).encode())
            received = b""
            while received.count(b'"NOT_FOUND"') < 3:
                received += connection.recv(65536)
        places = [received.find(f"documents/c/{n}".encode()) for n in "abc"]
        assert -1 not in places and places == sorted(places)

    def test_a_body_in_chunks(self, rest: Rest) -> None:
        parts = (part.encode() for part in ('{"fields": {"n": ', '{"integerValue"', ': "7"}}}'))
        target = f"/v1/{rest.name('c/a')}"
        headers = {"Content-Type": "application/json", "Authorization": "Bearer owner"}
        rest.connection.request("PATCH", target, parts, headers, encode_chunked=True)
        response = rest.connection.getresponse()
        assert json.loads(response.read())["fields"] == {"n": {"integerValue": "7"}}

    @pytest.mark.emulator_differs("it closes or answers otherwise")
    @pytest.mark.parametrize(
        "garbage",
        [
            b"\x16\x03\x01\x02\x00",
            b"GET\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
            b"G" * 20_000,
            b"GET / HTTP/9.9\r\n\r\n",
        ],
    )
    def test_garbage_ends_the_connection_but_not_the_server(self, address: str, rest: Rest, garbage: bytes) -> None:
        host, port = address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(65536)
        # The polite answer to a TLS handshake is a TLS alert.
        assert (
            answer == b""
            or answer.startswith(b"\x15\x03")
            or any(code in answer for code in (b" 400 ", b" 431 ", b" 505 "))
        )
        assert rest.send("GET", "/").status == 200


def curl(*arguments: str) -> tuple[str, int, bytes]:
    """HTTP version, status and content."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    command = ["curl", "-sS", "-m", "10", "-w", "\n%{http_version} %{http_code}", *arguments]
    run = subprocess.run(command, capture_output=True, check=True)
    content, _, numbers = run.stdout.rpartition(b"\n")
    version, status = numbers.decode().split()
    return version, int(status), content


@pytest.mark.emulator_differs("over HTTP/2 it speaks gRPC only")
class TestHttp2:
    def test_rest_over_http2(self, address: str, rest: Rest) -> None:
        rest.put("c/a", ONE)
        version, status, content = curl("--http2-prior-knowledge", f"http://{address}/v1/{rest.name('c/a')}")
        assert (version, status) == ("2", 200)
        assert json.loads(content)["fields"] == ONE

    def test_errors_over_http2(self, address: str, rest: Rest) -> None:
        version, status, content = curl("--http2-prior-knowledge", f"http://{address}/v1/{rest.name('c/none')}")
        assert (version, status) == ("2", 404)
        assert json.loads(content)["error"]["status"] == "NOT_FOUND"

    def test_posting_over_http2(self, address: str, rest: Rest) -> None:
        body = json.dumps({"fields": {"text": {"stringValue": "x" * 900_000}}})
        command = ["--http2-prior-knowledge", "-X", "PATCH", "-H", "Content-Type: application/json", "-d", "@-"]
        run = subprocess.run(
            ["curl", "-sS", "-m", "10", *command, f"http://{address}/v1/{rest.name('c/a')}"],
            input=body.encode(),
            capture_output=True,
            check=True,
        )
        assert len(json.loads(run.stdout)["fields"]["text"]["stringValue"]) == 900_000


class TestVerbs:
    def test_unknown_verbs(self, rest: Rest) -> None:
        assert rest.send("TRACE", "/v1/x").status in (400, 404, 405, 501)


@pytest.mark.emulator_differs("it serves pages of any origin, under any name")
class TestOtherPages:
    """Pages of other sites, in the browser of a developer who runs a server for local development."""

    EVIL = {"Origin": "https://evil.example"}

    @pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost.evil.example", "null"])
    def test_they_neither_read_nor_delete(self, rest: Rest, origin: str) -> None:
        rest.put("c/a", ONE)
        sent = {"Origin": origin}
        for verb, target in (
            ("GET", f"/v1/{rest.name('c/a')}"),
            ("OPTIONS", f"/v1/{rest.name('c/a')}"),
            ("DELETE", f"/emulator/v1/{rest.root}"),
            ("PUT", f"/emulator/v1/projects/{rest.project}:securityRules"),
            ("POST", "/shutdown"),
            ("GET", "/.json"),
            ("GET", "/.lp?start=t&ser=1&cb=1&v=5"),
            ("POST", "/google.firestore.v1.Firestore/Listen/channel?VER=8&RID=1"),
            ("GET", "/bundles/x"),
        ):
            reply = rest.send(verb, target, headers=sent)
            assert reply.status == 403, (verb, target)
            assert "access-control-allow-origin" not in reply.headers
            assert "--allow-origin" in reply.error()[2]
        assert rest.get("c/a").status == 200

    def test_nor_open_sockets(self, rest: Rest) -> None:
        headers = {
            **self.EVIL,
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        }
        assert rest.send("GET", "/.ws?v=5&ns=x", headers=headers).status == 403

    def test_nor_read_by_scripts(self, rest: Rest) -> None:
        sent = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}
        assert rest.send("GET", "/.json?callback=f", headers=sent).status == 403
        assert rest.send("GET", "/.json?callback=f", headers={**sent, "Referer": "http://127.0.0.1:3000/"}).status == 200

    @pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "localhost.evil.example"])
    def test_names_that_anybody_can_point_here(self, rest: Rest, host: str) -> None:
        reply = rest.send("GET", f"/v1/{rest.name('c/a')}", headers={"Host": host})
        assert reply.status == 403 and "--allow-host" in reply.error()[2]

    @pytest.mark.parametrize("host", ["a b", "a/b", "u@a", "a:b"])
    def test_names_that_are_none(self, rest: Rest, host: str) -> None:
        assert rest.send("GET", "/", headers={"Host": host}).status == 400


@pytest.mark.emulator_differs("its limits are its own")
@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_request_that_is_too_large(rest: Rest, is_chunked: bool) -> None:
    """100 MiB: rejected by its length at once, or while it is received."""
    size = 100 << 20
    piece = b" " * (1 << 20)
    rest.connection.putrequest("POST", f"/v1/{rest.root}:commit")
    rest.connection.putheader("Authorization", "Bearer owner")
    rest.connection.putheader(*(("Transfer-Encoding", "chunked") if is_chunked else ("Content-Length", str(size))))
    rest.connection.endheaders()
    if is_chunked:
        try:
            for _ in range(100):
                rest.connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        except OSError:
            pass  # The server has answered and reads no more.
    answer = rest.connection.getresponse()
    assert answer.status == 413
    body = json.loads(answer.read())
    assert body["error"]["code"] == 413 and body["error"]["status"] == "INVALID_ARGUMENT"
