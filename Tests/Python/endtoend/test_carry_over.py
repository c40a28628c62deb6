"""A folder of format version 1, which has no logs, is carried over; the disk fails, or the server is killed, meanwhile."""

from __future__ import annotations

import errno
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from support.faults import ALWAYS, OPEN, SYNC, TRUNCATE, WRITE, Faults, compiler
from support.program import BINARY, EFFORT, Program, assert_sound

pytestmark = [
    pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program"),
    pytest.mark.skipif(compiler() is None, reason="no C compiler for the disk that fails"),
]

DOCUMENTS = "/v1/projects/f/databases/(default)/documents"
COUNT = 20


def put(server: Program, number: int) -> int:
    return server.send("PATCH", f"{DOCUMENTS}/c/{number}", {"fields": {"n": {"integerValue": str(number)}}})[0]


def numbers(server: Program) -> list[int]:
    query = {"from": [{"collectionId": "c"}], "orderBy": [{"field": {"fieldPath": "n"}}]}
    status, answer = server.send("POST", f"{DOCUMENTS}:runQuery", {"structuredQuery": query})
    assert status == 200, answer
    return [int(row["document"]["fields"]["n"]["integerValue"]) for row in json.loads(answer) if "document" in row]


def version(data: Path) -> int:
    connection = sqlite3.connect(data / "f" / "(default).sqlite")
    try:
        return connection.execute("PRAGMA user_version").fetchone()[0]
    finally:
        connection.close()


def version_1(folder: Path) -> Path:
    """A data folder as a hearth of that version has left it."""
    server = Program(folder)
    try:
        assert [put(server, number) for number in range(COUNT)] == [200] * COUNT
        assert server.send("PUT", "/a.json?ns=t", {"b": 1})[0] == 200
        server.settle()
        assert server.terminate()[0] == 0
    finally:
        if server.process.poll() is None:
            server.kill()
    data = folder / "hearth-data"
    for file in data.rglob("*.sqlite"):
        shutil.rmtree(file.with_name(file.name + "-log"))
        connection = sqlite3.connect(file, isolation_level=None)
        assert connection.execute("DELETE FROM meta WHERE substr(key, 1, 2) = x'ffff'").rowcount == 1
        connection.execute("PRAGMA user_version = 1")
        connection.close()
    assert version(data) == 1
    return data


def test_it_is_carried_over(tmp_path: Path) -> None:
    data = version_1(tmp_path)
    assert_sound(data)
    assert version(data) == 1
    server = Program(tmp_path)
    try:
        assert numbers(server) == list(range(COUNT))
        assert server.send("GET", "/a/b.json?ns=t") == (200, b"1")
        assert put(server, COUNT) == 200
    finally:
        server.kill()
    assert_sound(data)
    server = Program(tmp_path)
    try:
        assert numbers(server) == list(range(COUNT + 1))
        server.settle()
        assert server.terminate()[0] == 0
    finally:
        if server.process.poll() is None:
            server.kill()
    assert version(data) == 4


@pytest.mark.parametrize("is_crash", [False, True], ids=["mended", "crash"])
def test_an_interruption_at_each_call_loses_nothing(tmp_path: Path, is_crash: bool) -> None:
    original = tmp_path / "original"
    original.mkdir()
    version_1(original)
    failed = 0
    # A commit, and the opening before it, take some dozens; the log's first file some hundreds.
    for call in [*range(1, 40, 1 if EFFORT > 1 else 4), 60, 100]:
        folder = tmp_path / str(call)
        shutil.copytree(original, folder, ignore=shutil.ignore_patterns("*.json"))
        faults = Faults(folder, folder / "hearth-data")
        server = Program(folder, "--data", str(faults.data), environment=faults.environment)
        try:
            faults.arm(call, ALWAYS, errno.EIO, WRITE | SYNC | TRUNCATE | OPEN)
            status = put(server, COUNT)
            assert status in (200, 503), call
            failed += status == 503
            if is_crash:
                server.kill()
                faults.lift()
                server = Program(folder, "--data", str(faults.data), environment=faults.environment)
            faults.lift()
            found = numbers(server)
            expected = list(range(COUNT))
            assert found == [*expected, COUNT] if status == 200 else found in (expected, [*expected, COUNT]), call
            assert put(server, COUNT + 1) == 200
            assert numbers(server) == [*found, COUNT + 1]
            server.settle()
            assert server.terminate()[0] == 0
        finally:
            if server.process.poll() is None:
                server.kill()
        assert_sound(faults.data)
        assert version(faults.data) == 4
        shutil.rmtree(folder)
    assert failed >= 5
