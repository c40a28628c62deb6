"""Databases and namespaces are created and deleted under load: their users receive clear answers, and the name is
usable afterwards.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import struct
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

from support.patience import PATIENCE
from support.program import BINARY, Program, assert_sound, program
from support.streams import Listen

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

GOLDEN = Path(__file__).parents[2] / "Vectors" / "data-folder"


class Peer:
    """One connection."""

    def __init__(self, run: Program) -> None:
        self.http = http.client.HTTPConnection("127.0.0.1", run.port, timeout=PATIENCE)

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        text = None if body is None else json.dumps(body)
        self.http.request(method, path, text, {"Authorization": "Bearer owner"})
        answer = self.http.getresponse()
        content = answer.read()
        try:
            return answer.status, json.loads(content)
        except ValueError:
            return answer.status, content


def documents(database: str, path: str = "") -> str:
    return f"/v1/projects/demo/databases/{database}/documents{path}"


def fields(number: int) -> dict[str, Any]:
    return {"fields": {"n": {"integerValue": str(number)}}}


def descriptors(run: Program) -> int:
    return len(os.listdir(f"/proc/{run.process.pid}/fd"))


def unnamed_files(run: Program) -> int:
    """The form of answers."""
    count = 0
    for number in os.listdir(f"/proc/{run.process.pid}/fd"):
        try:
            count += os.readlink(f"/proc/{run.process.pid}/fd/{number}").endswith(" (deleted)")
        except FileNotFoundError:
            continue
    return count


def in_threads(bodies: list[Any]) -> None:
    """Runs all concurrently; the first failure fails the test."""
    with ThreadPoolExecutor(len(bodies)) as pool:
        for ended in [pool.submit(body) for body in bodies]:
            ended.result()


def test_a_database_is_deleted_beside_its_users(tmp_path: Path) -> None:
    with program(tmp_path) as run:
        over = threading.Event()
        answers: Counter[tuple[str, int, str]] = Counter()

        def note(what: str, status: int, body: Any) -> None:
            error = body[0] if isinstance(body, list) and body else body
            name = error.get("error", {}).get("status", "") if isinstance(error, dict) else ""
            answers[(what, status, name)] += 1

        def write(worker: int) -> None:
            peer = Peer(run)
            number = 0
            while not over.is_set():
                number += 1
                note("write", *peer.send("PATCH", documents("extra-db", f"/c/{worker}"), fields(number)))

        def read() -> None:
            peer = Peer(run)
            query = {"structuredQuery": {"from": [{"collectionId": "c"}], "orderBy": [{"field": {"fieldPath": "n"}}]}}
            while not over.is_set():
                note("query", *peer.send("POST", documents("extra-db", ":runQuery"), query))
                status, body = peer.send("POST", documents("extra-db", ":beginTransaction"), {})
                note("begin", status, body)
                if status == 200:
                    commit = {"transaction": body["transaction"], "writes": []}
                    note("commit", *peer.send("POST", documents("extra-db", ":commit"), commit))

        def listing() -> None:
            peer = Peer(run)
            while not over.is_set():
                note("list", *peer.send("GET", "/v1/projects/demo/databases"))
                note("clear", *peer.send("DELETE", "/emulator/v1/projects/demo/databases/extra-db/documents"))

        def catalog() -> None:
            peer = Peer(run)
            index = {
                "queryScope": "COLLECTION",
                "fields": [{"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "b", "order": "ASCENDING"}],
            }
            path = "/v1/projects/demo/databases/extra-db/collectionGroups/c/indexes"
            while not over.is_set():
                note("index", *peer.send("POST", path, index))

        def delete() -> None:
            peer = Peer(run)
            try:
                for _ in range(40):
                    status, body = peer.send("DELETE", "/v1/projects/demo/databases/extra-db")
                    note("delete", status, body)
                    # Until a client has created it again.
                    assert peer.send("PATCH", documents("extra-db", "/made/x"), fields(1))[0] in (200, 404)
            finally:
                over.set()

        in_threads([lambda worker=worker: write(worker) for worker in range(8)] + [read, listing, catalog, delete])
        allowed = {
            "write": {(200, ""), (404, "NOT_FOUND")},
            "query": {(200, ""), (404, "NOT_FOUND")},
            "begin": {(200, ""), (404, "NOT_FOUND")},
            # A transaction of the deleted database does not belong to the new one.
            "commit": {(200, ""), (404, "NOT_FOUND"), (400, "INVALID_ARGUMENT"), (409, "ABORTED")},
            "list": {(200, "")},
            "clear": {(200, ""), (404, "NOT_FOUND")},
            "index": {(200, ""), (404, "NOT_FOUND"), (409, "ALREADY_EXISTS")},
            "delete": {(200, ""), (404, "NOT_FOUND")},
        }
        for (what, status, name), count in answers.items():
            assert (status, name) in allowed[what], (what, status, name, count)
        assert answers[("delete", 200, "")] > 10
        # The name is usable, with only the data after the last deletion.
        peer = Peer(run)
        assert peer.send("PATCH", documents("extra-db", "/c/after"), fields(7))[0] == 200
        assert peer.send("GET", documents("extra-db", "/c/after"))[1]["fields"] == fields(7)["fields"]
        run.terminate()
    assert_sound(tmp_path / "hearth-data")


def test_answers_that_are_cut_leave_no_files(tmp_path: Path) -> None:
    """Clients disconnect within a large answer, which is in a file: the files are deleted, too."""
    with program(tmp_path) as run:
        peer = Peer(run)
        value = {f"k{number}": "x" * 1000 for number in range(4000)}
        assert peer.send("PUT", "/a.json?ns=n", value)[0] == 200
        for number in range(60):
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.settimeout(30)
                client.connect(("127.0.0.1", run.port))
                client.sendall(b"GET /a.json?ns=n HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer owner\r\n\r\n")
                assert client.recv(1)
                # The more is read, the later the client disconnects.
                for _ in range(number):
                    client.recv(4096)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for _ in range(600):
            if unnamed_files(run) == 0:
                break
            time.sleep(0.1)
        assert unnamed_files(run) == 0
        assert peer.send("GET", "/a.json?ns=n") == (200, value)


def test_reading_makes_nothing(tmp_path: Path) -> None:
    with program(tmp_path) as run:
        peer = Peer(run)
        assert peer.send("GET", "/readyz")[0] == 200
        before = descriptors(run)
        for number in range(300):
            name = f"only-read-{number}"
            assert peer.send("GET", documents(name, "/c/d"))[0] == 404
            query = {"structuredQuery": {"from": [{"collectionId": "c"}]}}
            assert peer.send("POST", documents(name, ":runQuery"), query)[0] == 200
            assert peer.send("POST", documents(name, ":beginTransaction"), {})[0] == 200
            assert peer.send("GET", f"/a/b.json?ns={name}") == (200, None)
            # Writes that change nothing are no reason for a file either.
            assert peer.send("DELETE", documents(name, "/c/d"))[0] == 200
            assert peer.send("DELETE", f"/a/b.json?ns={name}")[0] == 200
            assert peer.send("DELETE", f"/emulator/v1/projects/demo/databases/{name}/documents")[0] == 200
        assert descriptors(run) <= before + 8
        assert peer.send("GET", "/v1/projects/demo/databases")[1].get("databases", []) == []
        assert not list((tmp_path / "hearth-data").rglob("*only-read*"))
        assert peer.send("PATCH", documents("only-read-5", "/c/d"), fields(1))[0] == 200
        assert peer.send("PUT", "/a/b.json?ns=only-read-6", 6)[0] == 200
        assert len(list((tmp_path / "hearth-data").rglob("*only-read-[56].*"))) >= 2
        listed = peer.send("GET", "/v1/projects/demo/databases")[1]["databases"]
        assert [database["name"] for database in listed] == ["projects/demo/databases/only-read-5"]
        assert peer.send("GET", documents("only-read-5", "/c/d"))[1]["fields"] == fields(1)["fields"]
        assert peer.send("GET", "/a/b.json?ns=only-read-6") == (200, 6)


def test_listeners_of_what_does_not_exist_hear_of_its_first_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with program(tmp_path) as run:
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", run.address)
        client = firestore.Client(project="demo", credentials=AnonymousCredentials(), database="fresh-db")
        heard = threading.Event()
        first = threading.Event()

        def on_snapshot(snapshots: list[Any], _changes: Any, _time: Any) -> None:
            first.set()
            if snapshots:
                heard.set()

        watch = client.collection("c").on_snapshot(on_snapshot)
        assert first.wait(PATIENCE)
        events = http.client.HTTPConnection("127.0.0.1", run.port, timeout=PATIENCE)
        events.request("GET", "/a.json?ns=fresh", headers={"Accept": "text/event-stream"})
        stream = events.getresponse()
        assert stream.readline() == b"event: put\n"
        assert b'"data":null' in stream.readline()
        assert not list((tmp_path / "hearth-data").rglob("*fresh*"))
        peer = Peer(run)
        assert peer.send("PATCH", documents("fresh-db", "/c/d"), fields(1))[0] == 200
        assert peer.send("PUT", "/a/b.json?ns=fresh", 5)[0] == 200
        assert heard.wait(PATIENCE)
        while True:
            line = stream.readline()
            assert line, "the stream has ended"
            if b'"data":5' in line:
                break
        watch.unsubscribe()
        client.close()


def test_a_deleted_databases_listeners_end_with_not_found(tmp_path: Path) -> None:
    with program(tmp_path) as run, grpc.insecure_channel(run.address) as channel:
        peer = Peer(run)
        assert peer.send("PATCH", documents("extra-db", "/c/d"), fields(1))[0] == 200

        def listen() -> Listen:
            stream = Listen(channel, "demo")
            stream.database = "projects/demo/databases/extra-db"
            stream.root = f"{stream.database}/documents"
            stream.add_query(2, "c")
            return stream

        stream = listen()
        stream.snapshot()
        assert peer.send("DELETE", "/v1/projects/demo/databases/extra-db")[0] == 200
        with pytest.raises(grpc.RpcError) as ended:
            while stream.next() is not None:
                pass
        assert ended.value.code() == grpc.StatusCode.NOT_FOUND
        # A client that connects again finds an empty database, and receives its new data.
        again = listen()
        while (message := again.next()) != ("boundary",):
            assert message[0] != "change", message
        assert peer.send("PATCH", documents("extra-db", "/c/e"), fields(2))[0] == 200
        while (message := again.next())[0] != "change":
            pass
        assert message[1] == "c/e"
        again.cancel()


def test_more_databases_than_are_kept_open(tmp_path: Path) -> None:
    """Resources in use stay: a listener, a transaction. A closed database is opened again when it is named."""
    count = 180
    with program(tmp_path) as run:
        peer = Peer(run)
        assert peer.send("PUT", "/seen.json?ns=kept", 0)[0] == 200
        events = http.client.HTTPConnection("127.0.0.1", run.port, timeout=PATIENCE)
        events.request("GET", "/seen.json?ns=kept", headers={"Accept": "text/event-stream"})
        stream = events.getresponse()
        stream.readline()
        assert peer.send("PATCH", documents("in-transaction", "/c/d"), fields(1))[0] == 200
        status, begun = peer.send("POST", documents("in-transaction", ":beginTransaction"), {})
        assert status == 200
        for number in range(count):
            assert peer.send("PATCH", documents(f"many-{number}", "/c/d"), fields(number))[0] == 200
            assert peer.send("PUT", f"/a.json?ns=many-{number}", number)[0] == 200
        # At most 128 are open, in addition to those in use; each has several files.
        assert descriptors(run) < 128 * 8 + 100
        commit = {
            "transaction": begun["transaction"],
            "writes": [{"update": {"name": documents("in-transaction", "/c/d")[4:], **fields(2)}}],
        }
        assert peer.send("POST", documents("in-transaction", ":commit"), commit)[0] == 200
        assert peer.send("PUT", "/seen.json?ns=kept", 1)[0] == 200
        while b'"data":1' not in stream.readline():
            pass
        for number in range(count):
            assert peer.send("GET", documents(f"many-{number}", "/c/d"))[1]["fields"] == fields(number)["fields"]
            assert peer.send("GET", f"/a.json?ns=many-{number}") == (200, number)
        assert len(peer.send("GET", "/v1/projects/demo/databases")[1]["databases"]) == count + 1
        run.terminate()
    assert_sound(tmp_path / "hearth-data")


def test_a_log_that_nobody_reads_stops_nobody(tmp_path: Path) -> None:
    count = 1500
    with program(tmp_path, "--log-requests") as run:
        peer = Peer(run)
        for _ in range(count):
            assert peer.send("GET", documents("(default)", "/c/d"))[0] == 404
        assert peer.send("GET", "/healthz")[0] == 200
        _, log = run.terminate()
        # More than a pipe takes, and less than the waiting data: nothing was dropped.
        assert len(log) > 1 << 16
        assert log.count("GetDocument") == count


@pytest.mark.parametrize("options", [(), ("--memory",)])
def test_rules_of_a_namespace_without_data_are_kept(tmp_path: Path, options: tuple[str, ...]) -> None:
    rules = {"rules": {".read": False, "open": {".read": True}}}
    with program(tmp_path, *options) as run:
        peer = Peer(run)
        assert peer.send("PUT", "/.settings/rules.json?ns=ruled", rules)[0] == 200
        # Long enough for unused databases to be closed.
        deadline = time.monotonic() + 2.5
        while time.monotonic() < deadline:
            run.send("GET", "/readyz")
        assert run.send("GET", "/shut.json?ns=ruled")[0] == 401
        assert run.send("GET", "/open.json?ns=ruled")[0] == 200


def test_a_data_folder_of_this_format_is_opened(tmp_path: Path) -> None:
    """Written by an earlier run of the program; see the README beside it."""
    shutil.copytree(GOLDEN / "hearth-data", tmp_path / "hearth-data")
    wanted = json.loads((GOLDEN / "content.json").read_text())
    with program(tmp_path) as run:
        peer = Peer(run)
        for path, body in wanted.items():
            assert peer.send("GET", path) == (200, body), path
        # And can be written to.
        assert peer.send("PATCH", documents("(default)", "/new/d"), fields(1))[0] == 200
        assert peer.send("PUT", "/new.json?ns=golden", 1)[0] == 200
        run.terminate()
    assert_sound(tmp_path / "hearth-data")
