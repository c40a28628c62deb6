"""The change feed over the wire: readers that are cut anywhere, and a server that is killed meanwhile.

A writer keeps a record of every commit that it asked for. A reader applies lines to a copy, and goes on behind the last line that
it has seen, be it within a commit. Whenever a commit's last line has come, the copy is the state of that commit.
"""

from __future__ import annotations

import http.client
import http.server
import json
import os
import random
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.patience import PATIENCE
from support.program import BINARY, Program, assert_sound, environment_of_a_child, program

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

ROOT = "projects/demo-hearth/databases/(default)/documents"
FEED = "/hearth/v1/changes"
COPIER = Path(BINARY).parent / "hearth-change-copy" if BINARY else Path()
PATHS = [f"a/d{number}" for number in range(30)] + [f"a/d{number}/b/x" for number in range(5)] + ["a-/q", "z/k"]


def commit(port: int, changes: list[tuple[str, int | None]]) -> str:
    """The commit's time."""
    writes: list[dict[str, Any]] = []
    for path, number in changes:
        name = f"{ROOT}/{path}"
        writes.append(
            {"delete": name} if number is None else {"update": {"name": name, "fields": {"n": {"integerValue": str(number)}}}}
        )
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("POST", f"/v1/{ROOT}:commit", json.dumps({"writes": writes}))
        answer = connection.getresponse()
        body = json.loads(answer.read())
        assert answer.status == 200, body
        return body["commitTime"]
    finally:
        connection.close()


def lines(port: int, query: str, timeout: float = PATIENCE) -> Iterator[dict[str, Any]]:
    """The documents' lines of one request, as they come; the connection is closed when the caller stops."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", f"{FEED}?{query}")
        answer = connection.getresponse()
        if answer.status != 200:
            raise AssertionError((answer.status, answer.read()))
        assert answer.headers["content-type"] == "application/x-ndjson"
        while line := answer.readline():
            if not line.endswith(b"\n"):
                return
            parsed = json.loads(line)
            if "heartbeat" not in parsed:
                yield parsed
    finally:
        connection.close()


def refusal(port: int, query: str) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", f"{FEED}{query}")
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())["error"]
    finally:
        connection.close()


def number(state: dict[str, Any] | None) -> int | None:
    return None if state is None else int(state["fields"]["n"]["integerValue"])


def path(line: dict[str, Any]) -> str:
    return line["document"].split("/documents/", 1)[1]


def apply(line: dict[str, Any], copy: dict[str, int]) -> None:
    after = number(line.get("after"))
    if after is None:
        copy.pop(path(line), None)
    else:
        copy[path(line)] = after


class Writer(threading.Thread):
    """Commits at random; knows the state after each commit that was answered."""

    def __init__(self, port: int, seed: int, state: dict[str, int]) -> None:
        super().__init__()
        self.port = port
        self.random = random.Random(seed)
        self.state = dict(state)
        self.history: dict[str, dict[str, int]] = {}
        self.is_over = threading.Event()
        #: What was asked for and not answered.
        self.unclear: list[tuple[str, int | None]] = []

    def run(self) -> None:
        while not self.is_over.is_set():
            changes = [
                (name, None if self.random.random() < 0.3 else self.random.randrange(10**6))
                for name in self.random.sample(PATHS, self.random.randrange(1, 6))
            ]
            self.unclear = changes
            try:
                when = commit(self.port, changes)
            except (OSError, http.client.HTTPException):
                return
            self.unclear = []
            for name, value in changes:
                if value is None:
                    self.state.pop(name, None)
                else:
                    self.state[name] = value
            self.history[micros(when)] = dict(self.state)


def micros(when: str) -> str:
    """The time with six digits."""
    seconds, _, fraction = when.rstrip("Z").partition(".")
    return f"{seconds}.{fraction:0<6}Z"


def test_readers_cut_anywhere_rebuild_the_database_over_kills(tmp_path: Path) -> None:
    seed = random.randrange(10**9)
    print("seed", seed)
    rng = random.Random(seed)
    state: dict[str, int] = {}
    copy: dict[str, int] = {}
    token = ""
    checked = 0
    for round_ in range(5):
        with program(tmp_path) as server:
            writer = Writer(server.port, rng.randrange(10**9), state)
            writer.start()
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                left = rng.randrange(1, 60)
                is_first = True
                try:
                    for line in lines(server.port, f"after={token}&wait=0.2" if token else "snapshot=true&wait=0.2"):
                        if is_first and line["type"] == "snapshot":
                            copy = {}
                        is_first = False
                        apply(line, copy)
                        token = line["token"]
                        if line.get("last"):
                            # Those of the first round's beginning, and ones whose answer was lost, are in no record.
                            known = writer.history.get(line["time"])
                            if known is not None:
                                assert copy == known, (seed, round_)
                                checked += 1
                        left -= 1
                        if left == 0:
                            break
                except (OSError, http.client.HTTPException):
                    pass
            server.kill()
            writer.is_over.set()
            writer.join()
        assert_sound(tmp_path / "hearth-data")
        with program(tmp_path) as server:
            for line in lines(server.port, f"after={token}" if token else "snapshot=true"):
                apply(line, copy)
                token = line["token"]
            present = {path(line): number(line["after"]) for line in lines(server.port, "snapshot=true")}
            assert copy == present, (seed, round_)
            # The last commit may have been made although its answer was lost.
            expected = dict(writer.state)
            if present != expected:
                for name, value in writer.unclear:
                    if value is None:
                        expected.pop(name, None)
                    else:
                        expected[name] = value
            assert present == expected, (seed, round_)
            state = present
            server.terminate()
    assert checked > 50


def test_a_snapshot_while_others_write_and_its_tail(tmp_path: Path) -> None:
    with program(tmp_path) as server:
        state: dict[str, int] = {}
        for start in range(0, 3000, 300):
            batch = [(f"big/{value:05d}", value) for value in range(start, start + 300)]
            commit(server.port, list(batch))
            state.update(dict(batch))
        writer = Writer(server.port, 7, state)
        writer.start()
        copy: dict[str, int] = {}
        is_tail = False
        count = 0
        for line in lines(server.port, "snapshot=true&wait=forever&before=false"):
            assert (line["type"] == "snapshot") != is_tail
            assert "before" not in line
            apply(line, copy)
            if line.get("last"):
                is_tail = True
                known = writer.history.get(line["time"])
                if known is not None:
                    assert copy == known
                count += 1
                if count > 300:
                    break
        writer.is_over.set()
        writer.join()
        assert server.terminate()[0] == 0


def test_events_resume_by_their_id(tmp_path: Path) -> None:
    with program(tmp_path) as server:
        commit(server.port, [("a/b", 1)])
        commit(server.port, [("a/b", 2)])
        seen = []
        last = ""
        for _ in range(2):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
            headers = {"accept": "text/event-stream"}
            if last:
                headers["last-event-id"] = last
            connection.request("GET", f"{FEED}?snapshot=true&wait=forever", headers=headers)
            answer = connection.getresponse()
            assert answer.headers["content-type"] == "text/event-stream"
            event = [answer.readline().decode().rstrip("\n") for _ in range(4)]
            last = event[0].removeprefix("id: ")
            line = json.loads(event[2].removeprefix("data: "))
            assert event[1] == f"event: {line['type']}"
            assert event[3] == ""
            assert line["token"] == last
            seen.append((line["type"], number(line["after"])))
            connection.close()
            commit(server.port, [("a/b", 3)])
        assert seen == [("snapshot", 2), ("updated", 3)]


def test_wrong_requests_are_named(tmp_path: Path) -> None:
    with program(tmp_path) as server:
        commit(server.port, [("a/b", 1)])
        for query, name in [("?after=x", "after"), ("?limt=1", "limt"), ("?wait=soon", "wait"), ("?document=a", "document")]:
            status, error = refusal(server.port, query)
            assert (status, error["status"]) == (400, "INVALID_ARGUMENT"), query
            assert f'"{name}"' in error["message"]
        assert refusal(server.port, "/demo-hearth/absent")[0] == 404
        assert server.send("POST", FEED)[0] == 405


def test_positions_fall_out_of_the_retention(tmp_path: Path) -> None:
    (tmp_path / "hearth.json").write_text('{"changes": {"retention": "2s"}}')
    with program(tmp_path) as server:
        commit(server.port, [("a/b", 1)])
        token = next(lines(server.port, "snapshot=true"))["token"]
        commit(server.port, [("a/b", 2)])
        end = time.monotonic() + 12
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
            connection.request("GET", f"{FEED}?after={token}")
            answer = connection.getresponse()
            body = answer.read()
            connection.close()
            if answer.status != 200:
                break
            assert time.monotonic() < end
            time.sleep(0.1)
        assert answer.status == 410
        assert json.loads(body)["error"]["status"] == "OUT_OF_RANGE"
        live = lines(server.port, f"after={next(lines(server.port, 'snapshot=true'))['token']}&wait=forever")
        commit(server.port, [("a/b", 3)])
        assert number(next(live)["after"]) == 3
        status, _ = server.send("DELETE", f"/emulator/v1/{ROOT}")
        assert status == 200
        assert next(live)["error"]["code"] == 410
        assert next(live, None) is None
        assert server.terminate()[0] == 0


@pytest.mark.parametrize("text", ["8d", "0s", "1", "1w", "-1s", ""])
def test_wrong_retentions_end_the_start(tmp_path: Path, text: str) -> None:
    (tmp_path / "hearth.json").write_text(json.dumps({"changes": {"retention": text}}))
    process = Program.spawn(tmp_path)
    _, log = process.communicate(timeout=PATIENCE)
    assert process.returncode == 78
    assert "changes.retention" in log


def test_the_end_of_the_server_is_the_last_line(tmp_path: Path) -> None:
    with program(tmp_path) as server:
        commit(server.port, [("a/b", 1)])
        feed = lines(server.port, "snapshot=true&wait=forever")
        assert next(feed)["last"]
        metric = b'hearth_changes_readers{project="demo-hearth",database="(default)"} 1\n'
        assert metric in server.send("GET", "/metrics")[1]
        server.process.terminate()
        assert next(feed)["error"]["code"] == 503
        assert next(feed, None) is None
        assert server.end()[0] == 0


def test_a_reader_that_does_not_read_costs_little(tmp_path: Path) -> None:
    def resident(process: subprocess.Popen[str]) -> int:
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise AssertionError

    with program(tmp_path) as server:
        for start in range(0, 20_000, 400):
            commit(server.port, [(f"big/{value:06d}", value * 10**9) for value in range(start, start + 400)])
        list(lines(server.port, "snapshot=true&limit=1"))
        before = resident(server.process)
        sleepers = []
        for _ in range(20):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
            connection.request("GET", f"{FEED}?snapshot=true&wait=forever")
            sleepers.append(connection)
        end = time.monotonic() + PATIENCE
        while b'database="(default)"} 20\n' not in server.send("GET", "/metrics")[1]:
            assert time.monotonic() < end
        # Another reader gets all of it meanwhile.
        assert sum(1 for _ in lines(server.port, "snapshot=true")) == 20_000
        assert resident(server.process) - before < 20 * 1024 + 30_000
        for connection in sleepers:
            connection.close()


@pytest.mark.skipif(not COPIER.is_file(), reason="hearth-change-copy is not beside the program")
def test_a_copy_reads_errors_that_come_in_pieces(tmp_path: Path) -> None:
    """The position is too old: a snapshot must follow, though the answer's body comes byte by byte."""
    token = "AVrE4WkF04DBAAZhMekexck"
    document = {"token": token, "type": "snapshot", "time": "", "document": f"{ROOT}/a/b", "last": True}
    snapshot = json.dumps({**document, "after": {"fields": {"n": {"integerValue": "7"}}}}) + "\n"
    error = json.dumps({"error": {"code": 410, "status": "OUT_OF_RANGE", "message": "x" * 100}})
    asked: list[str] = []

    class Feed(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, body = (200, snapshot) if len(asked) != 2 else (410, error)
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            for start in range(0, len(body), 10):
                self.wfile.write(body[start : start + 10].encode())
                self.wfile.flush()
                time.sleep(0.002)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Feed)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for _ in range(2):
            address = f"http://127.0.0.1:{server.server_port}"
            command = [str(COPIER), "--server", address, "--once", str(tmp_path / "copy.db")]
            assert subprocess.run(command, timeout=PATIENCE, env=environment_of_a_child()).returncode == 0
    finally:
        server.shutdown()
        server.server_close()
    assert [f"after={token}" in path for path in asked] == [False, True, False]


@pytest.mark.skipif(not COPIER.is_file(), reason="hearth-change-copy is not beside the program")
def test_a_copy_that_is_killed_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "copy.db"

    def copier(port: int, *options: str) -> subprocess.Popen[bytes]:
        command = [str(COPIER), "--server", f"http://127.0.0.1:{port}", *options, str(file)]
        return subprocess.Popen(command, env=environment_of_a_child())

    def copied() -> dict[str, int]:
        with sqlite3.connect(file) as opened:
            rows = opened.execute("SELECT name, fields FROM documents").fetchall()
        return {name.split("/documents/", 1)[1]: int(json.loads(fields)["n"]["integerValue"]) for name, fields in rows}

    rng = random.Random(os.getpid())
    with program(tmp_path) as server:
        for start in range(0, 4000, 400):
            commit(server.port, [(f"big/{value:05d}", value) for value in range(start, start + 400)])
        writer = Writer(server.port, 3, {f"big/{value:05d}": value for value in range(4000)})
        writer.start()
        for _ in range(8):
            running = copier(server.port)
            time.sleep(rng.uniform(0.02, 0.5))
            running.kill()
            running.wait()
        writer.is_over.set()
        writer.join()
        assert copier(server.port, "--once").wait(timeout=PATIENCE) == 0
        assert copied() == writer.state
        assert server.send("DELETE", f"/emulator/v1/{ROOT}")[0] == 200
        commit(server.port, [("a/b", 5)])
        # The history is another one: everything comes anew.
        assert copier(server.port, "--once").wait(timeout=PATIENCE) == 0
        assert copied() == {"a/b": 5}
