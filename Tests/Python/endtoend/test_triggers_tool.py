"""`hearth triggers` against a server and an endpoint."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from support.patience import PATIENCE
from support.program import BINARY, Program, program
from support.tool import Tool

WRITTEN = "google.cloud.firestore.document.v1.written"
NAME = "projects/demo-hearth/databases/(default)/documents"


@dataclass
class Endpoint:
    """Answers with `status`, and keeps what it got."""

    status: int = 200
    requests: list[dict[str, str]] = field(default_factory=list)
    url: str = ""


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    kept = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            kept.requests.append({**{key.lower(): value for key, value in self.headers.items()}, "body": body.hex()})
            answer = f"answered {kept.status}".encode()
            self.send_response(kept.status)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    kept.url = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield kept
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Site:
    folder: Path
    server: Program
    endpoint: Endpoint

    def run(self, *words: str, data: str = "", options: bool = True) -> subprocess.CompletedProcess[str]:
        address = ["--address", f"127.0.0.1:{self.server.port}"] if options else []
        return Tool("triggers", options=address, folder=self.folder).run(*words, data=data)

    def __call__(self, *words: str, data: str = "") -> str:
        ended = self.run(*words, data=data)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def write(self, path: str, number: int) -> None:
        document = {"fields": {"n": {"integerValue": str(number)}}}
        status, answer = self.server.send("PATCH", f"/v1/{NAME}/{path}", document)
        assert status == 200, answer

    def show(self, name: str) -> dict[str, object]:
        return dict(json.loads(self("show", name, "--json")))

    def wait(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.02)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    if not BINARY:
        pytest.skip("HEARTH_BINARY names no program")
    with endpoint() as kept:
        trigger = {"event": WRITTEN, "document": "c/{id}", "url": kept.url, "retry": {"maxAttempts": 1}}
        (tmp_path / "hearth.json").write_text(json.dumps({"triggers": {"sum": trigger}}))
        with program(tmp_path) as server:
            yield Site(tmp_path, server, kept)


def test_list_and_show(site: Site) -> None:
    lines = site("list").splitlines()
    assert lines[0].split() == "NAME STATE PENDING DELIVERED FAILED DEAD EVENT PATTERN URL".split()
    assert lines[1].split() == ["sum", "active", "0", "0", "0", "0", "written", "c/{id}", site.endpoint.url]
    site.write("c/a", 1)
    site.wait(lambda: site.show("sum")["delivered"] == 1)
    assert f"url             {site.endpoint.url}" in site("show", "sum").splitlines()
    assert json.loads(site("list", "--json"))["triggers"][0]["name"] == "sum"


def test_a_test_sends_one_event_that_is_not_counted(site: Site) -> None:
    site.write("c/a", 7)
    site.wait(lambda: site.show("sum")["delivered"] == 1)
    before = len(site.endpoint.requests)
    printed = site("test", "sum", "--document", "c/a")
    assert printed.startswith(f"POST {site.endpoint.url}\n")
    assert "x-hearth-test: true\n" in printed
    assert '"n":{"integerValue":"7"}' in printed
    assert "\nHTTP 200 after " in printed
    assert printed.endswith("\n\nanswered 200\n")
    assert len(site.endpoint.requests) == before + 1
    sent = site.endpoint.requests[-1]
    assert sent["x-hearth-test"] == "true"
    assert sent["ce-document"] == "c/a"
    answer = json.loads(site("test", "sum", "--document", f"{NAME}/c/a", "--json"))
    assert answer["answer"]["acknowledged"] is True
    assert answer["event"]["document"] == "c/a"
    site.endpoint.status = 500
    failed = site.run("test", "sum", "--document", "c/a")
    assert failed.returncode == 1
    assert "\nHTTP 500 after " in failed.stdout
    assert failed.stderr == "hearth: The endpoint did not acknowledge the event: The endpoint answered 500.\n"
    shown = site.show("sum")
    assert (shown["delivered"], shown["failedAttempts"], shown["state"]) == (1, 0, "active")


def test_a_test_of_the_realtime_database(site: Site) -> None:
    kind = "google.firebase.database.ref.v1.written"
    definition = {"event": kind, "ref": "status/{uid}", "url": site.endpoint.url, "paused": True}
    site("set", "presence", "-", data=json.dumps(definition))
    status, answer = site.server.send("PUT", "/status/alice.json?ns=demo-hearth-default-rtdb", {"on": True})
    assert status == 200, answer
    assert site.show("presence")["pending"] == 1
    printed = site("test", "presence", "--ref", "status/alice")
    assert "x-hearth-test: true\n" in printed
    assert '"data":{"on":true},"delta":{}' in printed
    assert "\nHTTP 200 after " in printed
    assert [sent["ce-ref"] for sent in site.endpoint.requests] == ["status/alice"]
    assert site.endpoint.requests[0]["ce-instance"] == "demo-hearth-default-rtdb"
    for words, reason in [
        (["--ref", "status/bob"], "(404): ref: there is no value"),
        (["--ref", "other/bob"], '(400): ref: the pattern "status/{uid}" does not match "other/bob"'),
        (["--ref", "status/alice", "--instance", "none"], "(404): ref: there is no value"),
        (["--document", "c/a"], "(400): document: "),
    ]:
        refused = site.run("test", "presence", *words)
        assert refused.returncode == 1
        assert reason in refused.stderr, refused.stderr
    shown = site.show("presence")
    assert (shown["pending"], shown["delivered"], shown["failedAttempts"]) == (1, 0, 0)


def test_refusals_of_a_test(site: Site) -> None:
    site.write("c/a", 1)
    for words, reason in [
        (["nothing", "--document", "c/a"], '(404): There is no trigger "nothing"'),
        (["sum", "--document", "c/none"], "(404): document: there is no document"),
        (["sum", "--document", "d/a"], '(400): document: the pattern "c/{id}" does not match "d/a"'),
        (["sum", "--document", "c"], "(400): document: "),
    ]:
        refused = site.run("test", *words)
        assert refused.returncode == 1
        assert reason in refused.stderr, refused.stderr


def test_dead_letters_are_listed_replayed_and_deleted(site: Site) -> None:
    site.endpoint.status = 500
    for number in range(5):
        site.write(f"c/{number}", number)
    site.wait(lambda: site.show("sum")["deadLetters"] == 5)
    lines = site("dead", "sum").splitlines()
    assert len(lines) == 5
    assert all("1 attempt  500: The endpoint answered 500: answered 500" in line for line in lines)
    letters = [json.loads(line) for line in site("dead", "sum", "--json").splitlines()]
    assert {letter["document"] for letter in letters} == {f"{NAME}/c/{number}" for number in range(5)}
    site.endpoint.status = 200
    assert site("replay", "sum", "--dead-letters") == "5 events are sent again.\n"
    site.wait(lambda: site.show("sum")["delivered"] == 5)
    assert site("dead", "sum") == ""
    sent = [request["ce-id"] for request in site.endpoint.requests]
    assert sorted(sent[5:]) == sorted(letter["id"] for letter in letters)
    site.endpoint.status = 500
    site.write("c/x", 1)
    site.wait(lambda: site.show("sum")["deadLetters"] == 1)
    assert site("dead", "sum", "--delete") == "1 dead letter deleted.\n"
    assert site("dead", "sum") == ""


def test_replay_since_a_time(site: Site) -> None:
    def delivered(count: int) -> bool:
        """Also out of the queue: what is still in it is not sent once more."""
        state = site.show("sum")
        return (state["delivered"], state["pending"]) == (count, 0)

    # Events of two documents arrive in either order.
    site.write("c/a", 1)
    site.wait(lambda: delivered(1))
    site.write("c/b", 2)
    site.wait(lambda: delivered(2))
    since = site.endpoint.requests[1]["ce-time"]
    assert json.loads(site("replay", "sum", "--since", since, "--json")) == {"events": 1}
    site.wait(lambda: delivered(3))
    assert site.endpoint.requests[2]["ce-id"] == site.endpoint.requests[1]["ce-id"]
    # A dead letter that is replayed is none any more.
    site.endpoint.status = 500
    site.write("c/dead", 3)
    site.wait(lambda: site.show("sum")["deadLetters"] == 1)
    site.endpoint.status = 200
    assert json.loads(site("replay", "sum", "--since", since, "--json")) == {"events": 2}
    site.wait(lambda: delivered(5))
    assert site("dead", "sum") == ""
    wrong = site.run("replay", "sum", "--since", "yesterday")
    assert wrong.returncode == 1
    assert "since: Expected a time" in wrong.stderr


def test_set_and_delete(site: Site) -> None:
    definition = {"event": WRITTEN, "document": "d/{id}", "url": site.endpoint.url, "paused": True}
    assert "state           paused" in site("set", "own", "-", data=json.dumps(definition))
    site.write("d/a", 1)
    assert site.show("own")["pending"] == 1
    (site.folder / "own.json").write_text(json.dumps({**definition, "paused": False}))
    site("set", "own", "own.json")
    site.wait(lambda: site.show("own")["delivered"] == 1)
    wrong = site.run("set", "own", "-", data='{\n  "event": "x"}')
    assert wrong.returncode == 1
    assert 'body:2:12: event: There is no event type "x".' in wrong.stderr
    refused = site.run("set", "sum", "own.json")
    assert refused.returncode == 1
    assert "(409)" in refused.stderr
    assert site("delete", "own") == ""
    assert site.run("show", "own").returncode == 1
    missing = site.run("set", "own", "nothing.json")
    assert missing.returncode == 73


def test_retry_sends_what_waits_at_once(site: Site) -> None:
    definition = {"event": WRITTEN, "document": "d/{id}", "url": site.endpoint.url}
    definition["retry"] = {"minBackoff": "23h", "maxBackoff": "23h"}
    (site.folder / "own.json").write_text(json.dumps(definition))
    site("set", "own", "own.json")
    site.endpoint.status = 500
    site.write("d/a", 1)
    site.wait(lambda: site.show("own")["failedAttempts"] == 1)
    site.endpoint.status = 200
    assert site.show("own")["lastError"]["message"] == "The endpoint answered 500: answered 500"
    assert site("retry", "own") == "1 event waits: those that waited for another attempt are sent now.\n"
    site.wait(lambda: site.show("own")["delivered"] == 1)
    assert site("retry", "own", "--json") == '{"pending":0}\n'
    (site.folder / "own.json").write_text(json.dumps({**definition, "paused": True}))
    site("set", "own", "own.json")
    paused = site.run("retry", "own")
    assert (paused.returncode, paused.stderr) == (
        1,
        'hearth: The server refuses (400): The trigger "own" is paused.\n',
    )
    assert site.run("retry", "none").returncode == 1


def test_check_needs_no_server(site: Site) -> None:
    good = site.run("check", "hearth.json", options=False)
    assert (good.returncode, good.stdout) == (0, "hearth.json: 1 trigger.\n")
    (site.folder / "wrong.json").write_text(
        '{"triggers": {\n'
        '  "a": {"event": "x", "document": "c/{i}", "url": "http://e/"},\n'
        f'  "b": {{"event": "{WRITTEN}", "document": "c/{{i}}", "url": "http://e/"}},\n'
        f'  "c": {{"event": "{WRITTEN}", "document": "c/{{i}}", "url": "ftp://e/"}},\n'
        f'  "d": {{"event": "{WRITTEN}", "document": "c/{{i}}", "url": "http://e/", "secretFile": "none"}}\n'
        "}}"
    )
    wrong = site.run("check", "wrong.json", options=False)
    assert wrong.returncode == 78
    assert wrong.stderr == "hearth: wrong.json: 3 errors.\n"
    lines = wrong.stdout.splitlines()
    assert lines[0] == 'wrong.json:2:18: triggers.a.event: There is no event type "x".'
    assert lines[1].startswith("wrong.json:4:")
    assert lines[1].endswith("triggers.c.url: Expected a URL of http or https.")
    assert lines[2].startswith("wrong.json:5:")
    assert "triggers.d.secretFile: " in lines[2]
    (site.folder / "wrong.json").write_text('{"trigers": {}, "port": 1, "auth": {}, "triggers": {}}')
    names = site.run("check", "wrong.json", options=False)
    assert (names.returncode, names.stderr) == (78, "hearth: wrong.json: 1 error.\n")
    assert names.stdout == 'wrong.json:1:13: trigers: Unknown setting; did you mean "triggers"?\n'
    (site.folder / "wrong.json").write_text('{"triggers": {')
    broken = site.run("check", "wrong.json", options=False)
    assert broken.returncode == 78
    assert "wrong.json:1:15: This is not valid JSON" in broken.stderr
    missing = site.run("check", "nothing.json", options=False)
    assert missing.returncode == 78


def test_no_server_is_unavailable(site: Site) -> None:
    site.server.terminate()
    assert site.run("list").returncode == 69
