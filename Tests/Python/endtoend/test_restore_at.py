"""`hearth restore --at`: databases are taken back to a time by their own history."""

from __future__ import annotations

import json
import shutil
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from endtoend.test_backup import DOCUMENTS, accounts, back_up, leftovers, restore, run, write
from support.patience import PATIENCE
from support.program import BINARY, Program, assert_sound, program

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

ROOT = "/v1/projects/p/databases/(default)"


def commit(server: Program, *writes: dict) -> str:
    """The time of the commit."""
    status, body = server.send("POST", f"/v1/{DOCUMENTS}:commit", {"writes": list(writes)})
    assert status == 200, body
    return json.loads(body)["commitTime"]


def parsed(moment: str) -> datetime:
    return datetime.fromisoformat(moment)


def earlier(moment: str) -> str:
    """A microsecond before."""
    return (parsed(moment) - timedelta(microseconds=1)).isoformat()


def documents(server: Program) -> list[dict]:
    status, body = server.send("GET", f"/v1/{DOCUMENTS}/accounts?pageSize=100")
    assert status == 200, body
    return json.loads(body).get("documents", [])


def count(server: Program, serial: int) -> int:
    """By an index."""
    filtered = {"fieldFilter": {"field": {"fieldPath": "serial"}, "op": "EQUAL", "value": {"integerValue": serial}}}
    query = {"from": [{"collectionId": "accounts"}], "where": filtered}
    aggregation = {"structuredQuery": query, "aggregations": [{"alias": "n", "count": {}}]}
    body = {"structuredAggregationQuery": aggregation}
    status, answer = server.send("POST", f"/v1/{DOCUMENTS}:runAggregationQuery", body)
    assert status == 200, answer
    return int(json.loads(answer)[0]["result"]["aggregateFields"]["n"]["integerValue"])


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[tuple[str, list[dict]]]]]:
    """A folder with a backup and the data of a server that was killed, and the states after each commit."""
    folder = tmp_path_factory.mktemp("history")
    states = []
    with program(folder) as server:
        for serial in range(12):
            # Documents come, change, go and come again.
            writes = [write(str(number), 100, serial) for number in range(5) if (serial + number) % 3]
            writes += [{"delete": f"{DOCUMENTS}/accounts/{serial % 5}"}]
            states.append((commit(server, *writes), documents(server)))
        assert server.send("PUT", "/a.json?ns=names", {"b": 1})[0] == 200
        assert server.send("PATCH", f"{ROOT.replace('(default)', 'later')}/documents/c/d", {"fields": {}})[0] == 200
        assert back_up(server, folder / "backup").returncode == 0
        server.kill()
    yield folder, states


def test_a_data_folder_goes_back_to_each_of_its_commits(
    history: tuple[Path, list[tuple[str, list[dict]]]], tmp_path: Path
) -> None:
    folder, states = history
    source = folder / "hearth-data"
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file() and path.name != ".lock"}
    for number, (moment, expected) in list(enumerate(states))[::3]:
        name = tmp_path / f"data{number}"
        result = restore(source, name, "--at", moment)
        assert result.returncode == 0, result.stderr
        assert b"keeps no history: 1 namespace stays" in result.stderr and moment.encode() in result.stderr
        assert b"databases/later has its first commit after" in result.stderr and result.stderr.count(b"warning:") == 2
        assert_sound(name)
        with program(tmp_path, "--data", name.name) as server:
            # With their times of creation and of update.
            assert documents(server) == expected
            assert count(server, number) == sum(
                document["fields"]["serial"]["integerValue"] == str(number) for document in expected
            )
            assert json.loads(server.send("GET", "/a.json?ns=names")[1]) == {"b": 1}
            # The other database is from later, and empty.
            assert server.send("GET", f"{ROOT.replace('(default)', 'later')}/documents/c/d")[0] == 404
            later = commit(server, write("new", 1, 1))
            assert parsed(later) > parsed(states[-1][0])
            server.terminate()
        assert_sound(name)
    assert before == {path: path.read_bytes() for path in source.rglob("*") if path.is_file() and path.name != ".lock"}
    assert leftovers(tmp_path) == []


def test_a_backup_goes_back(history: tuple[Path, list[tuple[str, list[dict]]]], tmp_path: Path) -> None:
    folder, states = history
    moment, expected = states[5]
    assert restore(folder / "backup", tmp_path / "data", "--at", earlier(states[6][0])).returncode == 0
    with program(tmp_path, "--data", "data") as server:
        assert documents(server) == expected
        server.terminate()
    result = run("restore", str(folder / "backup"), "--at", moment, "--verify-only")
    assert result.returncode == 0 and b"is sound" in result.stderr, result.stderr


def test_times_without_a_state_are_refused(
    history: tuple[Path, list[tuple[str, list[dict]]]], tmp_path: Path
) -> None:
    folder, states = history
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    now = datetime.now(UTC).isoformat()
    for source, moment, message in [
        ("backup", tomorrow, b"future"),
        ("hearth-data", tomorrow, b"future"),
        ("backup", "yesterday", b"expects a time"),
        ("backup", now, b"was begun at"),
        # Before the first commit of all databases there was nothing: a mistyped year must not look like a restore.
        ("backup", earlier(states[0][0]), states[0][0].encode()),
        ("hearth-data", "2020-01-01T00:00:00Z", states[0][0].encode()),
    ]:
        result = restore(folder / source, tmp_path / "data", "--at", moment)
        assert result.returncode == 64 and message in result.stderr, result.stderr
        assert list(tmp_path.iterdir()) == []
    result = restore(folder / "hearth-data", tmp_path / "data")
    assert result.returncode == 64 and b"--at" in result.stderr
    result = restore(folder / "hearth-data", folder / "hearth-data" / "inside", "--at", states[0][0])
    assert result.returncode == 64 and b"inside" in result.stderr
    # A part of a backup is no data folder.
    shutil.copytree(folder / "backup", tmp_path / "part")
    (tmp_path / "part" / "manifest.json").unlink()
    result = restore(tmp_path / "part", tmp_path / "data", "--at", states[0][0])
    assert result.returncode == 73 and b"manifest.json" in result.stderr


def test_a_cleared_database_names_its_earliest_time(tmp_path: Path) -> None:
    with program(tmp_path) as server:
        first = commit(server, write("a", 1, 1))
        assert server.send("DELETE", f"/emulator{ROOT}/documents")[0] == 200
        second = commit(server, write("b", 1, 1))
        busy = restore(tmp_path / "hearth-data", tmp_path / "data", "--at", second)
        assert busy.returncode == 73 and b"uses the data folder" in busy.stderr
        server.terminate()
    result = restore(tmp_path / "hearth-data", tmp_path / "data", "--at", first)
    assert result.returncode == 64 and not (tmp_path / "data").exists() and leftovers(tmp_path) == []
    earliest = result.stderr.decode().rsplit(" ", 1)[1].strip(" .\n")
    assert parsed(first) < parsed(earliest) < parsed(second)
    result = restore(tmp_path / "hearth-data", tmp_path / "data", "--at", earliest)
    assert result.returncode == 0, result.stderr
    with program(tmp_path, "--data", "data") as server:
        assert documents(server) == []
        server.terminate()


class Receiver:
    """A function that notes the documents of its events."""

    def __init__(self) -> None:
        found = self.found = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                found.append(self.headers["ce-document"])
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()


def configure(folder: Path, port: int) -> None:
    trigger = {
        "event": "google.cloud.firestore.document.v1.written",
        "document": "accounts/{id}",
        "project": "p",
        "url": f"http://127.0.0.1:{port}/",
    }
    (folder / "hearth.json").write_text(json.dumps({"triggers": {"t": trigger}}))


def test_events_of_what_was_undone_are_not_sent(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        configure(tmp_path, closed.getsockname()[1])
        with program(tmp_path) as server:
            commit(server, write("a", 1, 1))
            moment = commit(server, write("b", 1, 1))
            commit(server, write("a", 1, 2))
            commit(server, write("c", 1, 1))
            server.terminate()
    result = restore(tmp_path / "hearth-data", tmp_path / "data", "--at", moment)
    assert result.returncode == 0 and b"2 changes and 2 events undone" in result.stderr, result.stderr
    receiver = Receiver()
    configure(tmp_path, receiver.server.server_port)
    with program(tmp_path, "--data", "data") as server:
        assert set(accounts(server)) == {"a", "b"}
        commit(server, write("d", 1, 1))
        end = time.monotonic() + PATIENCE
        while "accounts/d" not in receiver.found:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert sorted(receiver.found) == ["accounts/a", "accounts/b", "accounts/d"]
        server.terminate()
    receiver.server.shutdown()
    assert_sound(tmp_path / "data")
