"""`hearth check` from outside: its counts, its results for damaged folders, its repairs, its errors."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

from support.events import Served, definition, until
from support.patience import PATIENCE
from support.program import BINARY, Program, check, program
from support.servers import free_port

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

ROOT = "/v1/projects/{}/databases/{}/documents"


def fill(folder: Path, clean: bool = True, documents: int = 12) -> Path:
    """A data folder with two databases; unless `clean`, in the state after SIGKILL."""
    (folder / "firestore.indexes.json").write_text(
        json.dumps(
            {"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": name, "order": "ASCENDING"} for name in "ab"]}]}
        )
    )
    with program(folder) as server:
        # Last the one whose log some tests damage: what isn't in the file yet when the server is killed.
        for project, database in [("q", "other"), ("p", "(default)")]:
            root = ROOT.format(project, database)
            writes = [
                {
                    "update": {
                        "name": f"{root[4:]}/c/d{number}",
                        "fields": {
                            "a": {"integerValue": str(number)},
                            "b": {"doubleValue": 0.5},
                            "tags": {"arrayValue": {"values": [{"stringValue": "x"}, {"stringValue": "y"}]}},
                        },
                    }
                }
                for number in range(documents)
            ]
            assert server.send("POST", f"{root}:commit", {"writes": writes})[0] == 200
            assert server.send("DELETE", f"{root}/c/d0")[0] == 200
        if clean:
            # Damage is planted into the files, not into their logs.
            server.settle()
            assert server.terminate()[0] == 0
        else:
            server.process.send_signal(signal.SIGKILL)
            server.end()
    return folder / "hearth-data"


def database(data: Path) -> sqlite3.Connection:
    (file,) = data.glob("p/*.sqlite")
    return sqlite3.connect(file, isolation_level=None)


def fingerprints(data: Path) -> dict[str, str]:
    """Of every file except the lock, which contains the id of the process that had it last."""
    files = [path for path in data.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("clean", [True, False])
def test_a_sound_folder(tmp_path: Path, clean: bool) -> None:
    data = fill(tmp_path, clean)
    before = fingerprints(data)
    result = check(data)
    assert (result.code, result.complaint) == (0, "")
    assert result.text == (
        f"{data}: 2 databases, all sound\n"
        "\n"
        # The index file is for the default database: five automatic entries a document, and one.
        "  p (default)\n    11 documents, 66 index entries, 13 feed records, 1 tombstone\n    sound\n\n"
        "  q other\n    11 documents, 55 index entries, 13 feed records, 1 tombstone\n    sound\n\n"
    )
    # Checking changes nothing; after a crash the logs stay for the server to recover.
    after = fingerprints(data)
    assert {path: after[path] for path in before} == before
    assert set(after) - set(before) <= {f"{path}{suffix}" for path in before for suffix in ("-wal", "-shm")}
    assert any("-log/" in path for path in before)


def test_damage_is_found_and_entries_are_repaired(tmp_path: Path) -> None:
    data = fill(tmp_path, documents=40)
    with database(data) as connection:
        entries = connection.execute("SELECT key, value FROM entries ORDER BY key").fetchall()
        for key, _ in entries[::7]:
            connection.execute("DELETE FROM entries WHERE key = ?", [key])
        for key, _ in entries[1::7]:
            connection.execute("UPDATE entries SET value = x'07' WHERE key = ?", [key])
        for key, value in entries[2::7]:
            connection.execute("INSERT INTO entries VALUES (?, ?)", [key + b"\1", value])
    connection.close()
    missing, wrong, stray = (len(entries[start::7]) for start in range(3))

    result = check(data)
    assert result.code == 1
    assert "1 of 2 databases has problems. `hearth check --repair` rebuilds" in result.complaint
    # Stray rows count as one problem.
    assert f"    {missing + wrong + 1} problems:\n" in result.text
    assert ": an index entry is missing\n" in result.text
    assert f"      and {missing + wrong + 1 - 20} more\n" in result.text

    result = check(data, "--repair")
    assert (result.code, result.complaint) == (0, "")
    assert f"repaired: {missing} index entries added, {wrong} corrected, {stray} removed\n" in result.text
    assert check(data).code == 0
    # The repair is in the log.
    with program(tmp_path) as server:
        assert server.send("GET", ROOT.format("p", "(default)") + "/c/d1")[0] == 200
        server.settle()
        server.terminate()
    connection = database(data)
    assert connection.execute("SELECT key, value FROM entries ORDER BY key").fetchall() == entries
    connection.close()


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("DELETE FROM feed WHERE key = (SELECT max(key) FROM feed)", "c/d0: the state before "),
        ("DELETE FROM meta WHERE substr(key, 1, 1) = x'74'", "feed: 2 records belong to no document or deletion"),
        ("UPDATE documents SET value = substr(value, 1, 12) WHERE rowid = 5", "A stored document is shorter"),
        ("UPDATE documents SET value = value || x'ff' WHERE rowid = 5", "c/d"),
        ("DELETE FROM documents WHERE rowid = 5", "belong to no document"),
        ("UPDATE meta SET value = x'0000000000000001' WHERE key = CAST('version' AS BLOB)", "updated at"),
        ("UPDATE meta SET value = x'ffff' WHERE key = CAST('catalog' AS BLOB)", "The rest was not checked."),
    ],
)
def test_what_is_no_matter_of_entries_is_not_repaired(tmp_path: Path, statement: str, found: str) -> None:
    data = fill(tmp_path)
    with database(data) as connection:
        assert connection.execute(statement).rowcount == 1
    connection.close()
    result = check(data)
    assert result.code == 1
    assert found in result.text
    again = check(data, "--repair")
    # A missing document leaves entries, which are removed; its history still contains it.
    assert again.code == 1


def test_damaged_pages(tmp_path: Path) -> None:
    data = fill(tmp_path, documents=400)
    (file,) = data.glob("p/*.sqlite")
    # The first pages are not damaged, so that the file is still recognized as Hearth's, and opened.
    with file.open("r+b") as raw:
        raw.seek(4096 * 20)
        raw.write(b"\x5a" * 4096 * 3)
    result = check(data)
    assert result.code == 1
    assert "      file: " in result.text
    assert "  q other\n    399 documents" in result.text
    repaired = check(data, "--repair")
    assert repaired.code == 1
    assert "repaired" not in repaired.text


def log_of(data: Path) -> Path:
    (folder,) = data.glob("p/*.sqlite-log")
    (file,) = folder.iterdir()
    return file


def record(file: Path, number: int) -> int:
    """Where a record of a log begins; each says how long its changes are."""
    content = file.read_bytes()
    starts, position = [], 1024
    while length := int.from_bytes(content[position : position + 4], "little"):
        starts.append(position)
        position += 24 + length
    return starts[number]


def flip(file: Path, offset: int) -> None:
    with file.open("r+b") as raw:
        raw.seek(offset)
        (byte,) = raw.read(1)
        raw.seek(offset)
        raw.write(bytes([byte ^ 1]))


class TestLogs:
    """After a kill the logs have commits that the files lack."""

    def damaged(self, data: Path, words: str) -> None:
        """`check` names the file, and the server does not serve the database, nor change its log."""
        before = fingerprints(data)
        for options in ((), ("--repair",)):
            result = check(data, *options)
            assert result.code == 1
            assert words in result.text, result.text
            assert "  q other\n    11 documents" in result.text
        with program(data.parent) as server:
            status, body = server.send("GET", ROOT.format("p", "(default)") + "/c/d5")
            assert (status, json.loads(body)["error"]["status"]) == (500, "DATA_LOSS")
            assert server.send("GET", ROOT.format("q", "other") + "/c/d5")[0] == 200
            assert server.send("GET", "/readyz")[0] == 200
            assert b"\nhearth_databases_failing 1\n" in server.send("GET", "/metrics")[1]
            _, log = server.terminate()
        assert log.count("the database can't be opened") == 1 and "file=hearth-data/p/(default).sqlite " in log, log
        after = fingerprints(data)
        logs = [path for path in before if "/p/(default).sqlite-log/" in path]
        assert logs and {path: after.get(path) for path in logs} == {path: before[path] for path in logs}

    def test_a_damaged_middle(self, tmp_path: Path) -> None:
        data = fill(tmp_path, clean=False)
        file = log_of(data)
        start = record(file, 0)
        flip(file, start + 40)
        self.damaged(data, f"The log p/(default).sqlite-log/1 is damaged at byte {start}: the record 1 is missing, but 2 follows.")

    def test_a_torn_end(self, tmp_path: Path) -> None:
        data = fill(tmp_path, clean=False)
        file = log_of(data)
        start = record(file, -1)
        flip(file, start + 40)
        result = check(data)
        assert result.code == 0, result.text
        assert f"    The log {file} ends at byte {start} with a record that isn't whole" in result.text
        with program(tmp_path) as server:
            # The last commit deleted it, and wasn't acknowledged if its record is torn.
            assert server.send("GET", ROOT.format("p", "(default)") + "/c/d0")[0] == 200

    def test_an_unreadable_beginning(self, tmp_path: Path) -> None:
        data = fill(tmp_path, clean=False)
        file = log_of(data)
        for copy in (0, 512):
            flip(file, copy + 17)
        self.damaged(data, "The log p/(default).sqlite-log/1 is damaged at byte 0: its beginning is unreadable.")

    def test_the_log_of_another_database(self, tmp_path: Path) -> None:
        data = fill(tmp_path, clean=False)
        (other,) = data.glob("q/*.sqlite-log/1")
        shutil.copy(other, log_of(data))
        self.damaged(
            data, "The log p/(default).sqlite-log/1 is damaged at byte 0: it is the log of another database's file."
        )

    @pytest.mark.parametrize("is_empty", [False, True])
    def test_a_log_without_its_file(self, tmp_path: Path, is_empty: bool) -> None:
        data = fill(tmp_path, clean=False)
        (file,) = data.glob("p/*.sqlite")
        if is_empty:
            file.write_bytes(b"")
        else:
            file.unlink()
        state = "empty" if is_empty else "missing"
        self.damaged(data, f"(default).sqlite is {state}, but its log is there: it was truncated, or lost.")
        # It is reported at the start, before anybody uses it, and can be deleted.
        with program(tmp_path) as server:
            assert b"\nhearth_databases_failing 1\n" in server.send("GET", "/metrics")[1]
            listed = json.loads(server.send("GET", "/v1/projects/p/databases")[1])
            assert listed.get("unreachable") == ["projects/p/databases/(default)"]
            assert server.send("DELETE", "/v1/projects/p/databases/(default)")[0] == 200
            assert not list(data.glob("p/*.sqlite*"))

    def test_a_file_without_its_log(self, tmp_path: Path) -> None:
        """The state of an earlier moment is not served, unless somebody accepts it."""
        data = fill(tmp_path, clean=False)
        shutil.rmtree(log_of(data).parent)
        words = "The log p/(default).sqlite-log/ is missing, but the database's file had one"
        result = check(data)
        assert result.code == 1 and words in result.text and "--accept-lost-logs" in result.text
        with program(tmp_path) as server:
            status, body = server.send("GET", ROOT.format("p", "(default)") + "/c/d5")
            assert (status, json.loads(body)["error"]["status"]) == (500, "DATA_LOSS")
            assert server.send("GET", ROOT.format("q", "other") + "/c/d5")[0] == 200
            server.terminate()
        result = check(data, "--accept-lost-logs")
        assert result.code == 0, result.text
        assert "(default): The log was missing." in result.text
        assert "other: The log was missing" not in result.text
        with program(tmp_path) as server:
            assert server.send("GET", ROOT.format("p", "(default)") + "/c/d5")[0] == 404
            assert server.send("PATCH", ROOT.format("p", "(default)") + "/c/d5", {"fields": {}})[0] == 200
        assert check(data).code == 0


def test_a_folder_that_a_server_has(tmp_path: Path) -> None:
    with program(tmp_path) as server:
        server.send("PATCH", ROOT.format("p", "(default)") + "/c/d", {"fields": {}})
        result = check(tmp_path / "hearth-data")
        assert result.code == 73
        assert result.complaint == (
            f"hearth: Another hearth process ({server.process.pid}) uses the data folder {tmp_path / 'hearth-data'}.\n"
        )
        assert result.text == ""
        assert server.send("GET", ROOT.format("p", "(default)") + "/c/d")[0] == 200


def test_a_newer_format(tmp_path: Path) -> None:
    data = fill(tmp_path)
    (file,) = data.glob("p/*.sqlite")
    with file.open("r+b") as header:
        header.seek(60)
        header.write((99).to_bytes(4, "big"))
    for options in [(), ("--repair",)]:
        result = check(data, *options)
        assert (result.code, result.text) == (73, "")
        assert "has format version 99, which is newer than" in result.complaint


def test_what_is_no_data_folder(tmp_path: Path) -> None:
    result = check(tmp_path / "none")
    assert (result.code, result.complaint) == (
        73,
        f"hearth: Cannot read the folder {tmp_path / 'none'}: No such file or directory.\n",
    )
    assert not (tmp_path / "none").exists()
    (tmp_path / "pictures").mkdir()
    result = check(tmp_path / "pictures")
    assert result.code == 73
    assert "is no data folder of hearth" in result.complaint
    assert list((tmp_path / "pictures").iterdir()) == []


def test_a_database_that_is_none(tmp_path: Path) -> None:
    data = fill(tmp_path)
    # A file whose creation was interrupted contains no data; a file of another kind is a problem.
    (data / "p" / "begun.sqlite").write_bytes(b"")
    assert check(data).code == 0
    (data / "p" / "noise.sqlite").write_bytes(b"no database " * 1000)
    result = check(data)
    assert result.code == 1
    assert "4 databases, 3 sound" in result.text


def test_an_empty_folder(tmp_path: Path) -> None:
    with program(tmp_path) as server:
        server.terminate()
    assert "no databases" in check(tmp_path / "hearth-data").text


def test_the_folder_that_the_server_would_use(tmp_path: Path) -> None:
    (tmp_path / "hearth.json").write_text('{"data": "elsewhere"}')
    with program(tmp_path) as server:
        server.send("PATCH", ROOT.format("p", "(default)") + "/c/d", {"fields": {}})
        server.terminate()
    ended = subprocess.run([BINARY, "check"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0
    assert ended.stdout.startswith(f"{tmp_path / 'elsewhere'}: 1 database, all sound\n")


def test_wrong_usage(tmp_path: Path) -> None:
    ended = subprocess.run([BINARY, "check", "--repare"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert (ended.returncode, ended.stderr) == (64, "hearth: Unknown option --repare; did you mean --repair?\n")


def test_a_server_goes_on_with_what_was_repaired(tmp_path: Path) -> None:
    data = fill(tmp_path)
    with database(data) as connection:
        connection.execute("DELETE FROM entries")
    connection.close()
    assert check(data, "--repair").code == 0
    server = Program(tmp_path)
    try:
        query = {
            "structuredQuery": {
                "from": [{"collectionId": "c"}],
                "where": {"fieldFilter": {"field": {"fieldPath": "a"}, "op": "GREATER_THAN", "value": {"integerValue": "7"}}},
            }
        }
        status, answer = server.send("POST", ROOT.format("p", "(default)") + ":runQuery", query)
        assert status == 200
        assert [row["document"]["name"].rsplit("/")[-1] for row in json.loads(answer)] == ["d8", "d9", "d10", "d11"]
    finally:
        server.terminate()


def test_wrong_counts_of_triggers_are_counted_anew(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}/"
    triggers = {
        "documents": definition(url, "c/{id}"),
        "locations": {"event": "google.firebase.database.ref.v1.written", "ref": "c/{id}", "url": url},
    }
    with Served(tmp_path, triggers) as served:
        for number in range(3):
            served.put(f"c/{number}", n=number)
            served.good("PUT", f"/c/{number}.json?ns=demo-hearth-default-rtdb", number)
        served.program.settle()
        assert served.program.terminate()[0] == 0
    data = tmp_path / "hearth-data"
    (documents,) = data.glob("demo-hearth/*.sqlite")
    (tree,) = data.glob("+realtime/*/*.sqlite")
    for file in (documents, tree):
        with sqlite3.connect(file, isolation_level=None) as connection:
            changed = connection.execute(
                "UPDATE meta SET value = x'0000000000000007' || substr(value, 9) WHERE substr(key, 1, 1) = x'70' AND length(key) = 5"
            )
            assert changed.rowcount == 1
        connection.close()

    result = check(data)
    assert result.code == 1
    assert "2 of 2 databases have problems. `hearth check --repair` rebuilds" in result.complaint
    assert result.text.count("meta: trigger 1 has 3 events since ") == 2 and result.text.count("its counts say 7 events") == 2
    result = check(data, "--repair")
    assert (result.code, result.complaint) == (0, "")
    assert result.text.count("    repaired: triggers' events are counted anew at the next start\n    sound\n") == 2
    assert check(data).code == 0
    with Served(tmp_path, triggers) as served:
        for name in triggers:
            until(lambda name=name: served.trigger(name)["pending"] == 3)
