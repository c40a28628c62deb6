"""HTTP around the API: readiness, clearing, CORS, both versions of HTTP on one port."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess

import pytest

from endtoend.rest import Rest

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
        with socket.create_connection((host, int(port)), timeout=5) as connection:
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
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(65536)
        # To what looks like TLS a TLS alert is the polite refusal.
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
