"""`hearth backup` and `hearth restore` from outside: under writers, damaged, killed, on a full disk, on a timer."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import threading
import time
from pathlib import Path

import pytest

from support.patience import PATIENCE
from support.program import BINARY, EFFORT, Program, assert_sound, environment_of_a_child, program

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

DOCUMENTS = "projects/p/databases/(default)/documents"
ACCOUNTS = 20


def run(*arguments: str, stdin: bytes | None = None, file_bytes_max: int | None = None) -> subprocess.CompletedProcess:
    limited = [] if file_bytes_max is None else ["prlimit", f"--fsize={file_bytes_max}"]
    return subprocess.run(
        [*limited, BINARY, *arguments], input=stdin, capture_output=True, timeout=120, env=environment_of_a_child()
    )


def back_up(server: Program, folder: Path | str, *options: str, **more: object) -> subprocess.CompletedProcess:
    return run("backup", str(folder), "--address", server.address, *options, **more)


def restore(backup: Path | str, folder: Path, *options: str, **more: object) -> subprocess.CompletedProcess:
    return run("restore", str(backup), "--data", str(folder), *options, **more)


def write(name: str, amount: int, serial: int) -> dict:
    fields = {"amount": {"integerValue": str(amount)}, "serial": {"integerValue": str(serial)}}
    return {"update": {"name": f"{DOCUMENTS}/accounts/{name}", "fields": fields}}


def rules(server: Program, method: str, body: object = None) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    try:
        headers = {"authorization": "Bearer owner"}
        connection.request(method, "/.settings/rules.json?ns=names", body and json.dumps(body), headers)
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read()
    finally:
        connection.close()


def fill(server: Program) -> None:
    writes = [write(str(number), 100, 0) for number in range(ACCOUNTS)]
    assert server.send("POST", f"/v1/{DOCUMENTS}:commit", {"writes": writes})[0] == 200
    other = f"/v1/projects/p/databases/{'Long' * 20}/documents/c/d"
    assert server.send("PATCH", other, {"fields": {}})[0] == 200
    assert server.send("PUT", "/a.json?ns=names", {"b": 1})[0] == 200
    rules(server, "PUT", {"rules": {".read": True, ".write": True}})


class Mover(threading.Thread):
    """Moves amounts between two documents, one commit each, and notes what was acknowledged."""

    def __init__(self, server: Program, first: int) -> None:
        super().__init__(daemon=True)
        self.server, self.first = server, first
        self.acknowledged = 0
        self.is_over = False

    def run(self) -> None:
        serial = 0
        while not self.is_over:
            serial += 1
            writes = [write(str(self.first), 100 - serial, serial), write(str(self.first + 1), 100 + serial, serial)]
            status, body = self.server.send("POST", f"/v1/{DOCUMENTS}:commit", {"writes": writes})
            assert status == 200, body
            self.acknowledged = serial


def accounts(server: Program) -> dict[str, tuple[int, int]]:
    status, body = server.send("GET", f"/v1/{DOCUMENTS}/accounts?pageSize=100")
    assert status == 200, body
    found = {}
    for document in json.loads(body)["documents"]:
        fields = document["fields"]
        found[document["name"].rsplit("/", 1)[1]] = tuple(
            int(fields[name]["integerValue"]) for name in ("amount", "serial")
        )
    return found


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if ".partial" in path.name]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup."""
    folder = tmp_path_factory.mktemp("sample")
    with program(folder) as server:
        fill(server)
        result = back_up(server, folder / "backup")
        assert result.returncode == 0, result.stderr
    return folder / "backup"


def test_a_backup_under_writers_has_every_commit_before_it_and_each_whole(tmp_path: Path) -> None:
    with program(tmp_path) as server:
        fill(server)
        movers = [Mover(server, first) for first in range(0, 8, 2)]
        for mover in movers:
            mover.start()
        for number in range(3):
            while min(mover.acknowledged for mover in movers) < 20 * number + 20:
                time.sleep(0.001)
            before = [mover.acknowledged for mover in movers]
            result = back_up(server, tmp_path / f"backup{number}")
            assert result.returncode == 0, result.stderr
            after = [mover.acknowledged + 1 for mover in movers]
            manifest = json.loads((tmp_path / f"backup{number}" / "manifest.json").read_text())
            assert restore(tmp_path / f"backup{number}", tmp_path / f"data{number}").returncode == 0
            with program(tmp_path, "--data", f"data{number}") as copy:
                found = accounts(copy)
                assert json.loads(copy.send("GET", "/a.json?ns=names")[1]) == {"b": 1}
                assert b"true" in rules(copy, "GET")
                long = f"/v1/projects/p/databases/{'Long' * 20}/documents/c/d"
                assert copy.send("GET", long)[0] == 200
                copy.terminate()
            assert sum(amount for amount, _ in found.values()) == 100 * ACCOUNTS
            for mover, first, last in zip(movers, before, after, strict=True):
                serials = {found[str(mover.first)][1], found[str(mover.first + 1)][1]}
                assert len(serials) == 1 and first <= serials.pop() <= last
            assert_sound(tmp_path / f"data{number}")
            (main,) = [entry for entry in manifest["databases"] if entry.get("database") == "(default)"]
            assert main["documents"] == ACCOUNTS and main["project"] == "p"
        for mover in movers:
            mover.is_over = True
            mover.join()
    assert leftovers(tmp_path) == []


def test_the_manifest_has_every_file(sample: Path) -> None:
    manifest = json.loads((sample / "manifest.json").read_text())
    assert manifest["format"] == 1 and manifest["started"] <= manifest["finished"]
    entries = {entry["file"]: entry for entry in manifest["databases"] + manifest["files"]}
    files = {str(path.relative_to(sample)) for path in sample.rglob("*") if path.is_file()}
    assert files == set(entries) | {"manifest.json"}
    for name, entry in entries.items():
        content = (sample / name).read_bytes()
        assert entry["bytes"] == len(content)
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()
    assert {entry.get("database", entry.get("namespace")) for entry in manifest["databases"]} == {
        "(default)",
        "Long" * 20,
        "names",
    }
    assert any(name.endswith(".rules") for name in entries) and any(name.endswith(".id") for name in entries)


def test_an_archive_is_the_same_and_other_tools_read_it(tmp_path: Path) -> None:
    with program(tmp_path) as server:
        fill(server)
        result = back_up(server, "-")
        assert (result.returncode, result.stderr) == (0, b"")
    with tarfile.open(fileobj=io.BytesIO(result.stdout)) as archive:
        names = archive.getnames()
        assert names[-1] == "manifest.json"
        archive.extractall(tmp_path / "extracted", filter="data")
    assert restore("-", tmp_path / "one", stdin=result.stdout).returncode == 0
    assert restore(tmp_path / "extracted", tmp_path / "two").returncode == 0
    # As other programs pack it.
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        archive.add(tmp_path / "extracted", arcname=".")
    assert restore("-", tmp_path / "three", stdin=packed.getvalue()).returncode == 0
    counts = [assert_sound(tmp_path / name).split(":", 1)[1] for name in ("one", "two", "three")]
    assert counts[0] == counts[1] == counts[2]
    longer = run("restore", "-", "--verify-only", stdin=result.stdout + b"\0" * 600 + b"x")
    assert longer.returncode == 73 and b"behind its end" in longer.stderr, longer.stderr
    cut = run("restore", "-", "--verify-only", stdin=result.stdout[: len(result.stdout) // 2])
    assert cut.returncode == 73 and b"cut" in cut.stderr, cut.stderr


def test_restore_refuses_what_is_damaged_and_makes_nothing(sample: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup"

    def refused(name: str, code: int = 73) -> None:
        result = restore(backup, tmp_path / "data")
        assert result.returncode == code and name.encode() in result.stderr, result.stderr
        assert not (tmp_path / "data").exists() and leftovers(tmp_path) == []
        shutil.rmtree(backup)
        shutil.copytree(sample, backup)

    shutil.copytree(sample, backup)
    for path in sorted(path for path in sample.rglob("*") if path.is_file()):
        name = str(path.relative_to(sample))
        if name == "manifest.json":
            continue
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        (backup / name).write_bytes(content)
        refused(name)
        (backup / name).write_bytes(path.read_bytes()[:-1])
        refused(name)
        (backup / name).unlink()
        refused(name)
    (backup / "more").write_bytes(b"x")
    refused("more")
    (backup / "link").symlink_to("manifest.json")
    refused("link")
    (backup / "manifest.json").unlink()
    refused("manifest.json")
    content = (sample / "manifest.json").read_bytes()
    for damaged in (content.replace(b'"finished": "2', b'"finished": "3'), content[:-1], content + b" "):
        (backup / "manifest.json").write_bytes(damaged)
        refused("manifest.json is damaged")
    # As versions wrote it that gave it no digest of its own.
    manifest = json.loads(content)
    del manifest["sha256"]

    def write_manifest(change: dict) -> None:
        (backup / "manifest.json").write_text(json.dumps({**manifest, **change}) + "\n")

    for change, message in [
        ({"format": 2}, "newer"),
        ({"databases": []}, "no entry"),
        ({"files": [*manifest["files"], {"file": "../x", "bytes": 0, "sha256": ""}]}, "../x"),
    ]:
        write_manifest(change)
        refused(message)
    # Damage that the checksum agrees with: the contents are checked, too.
    (entry,) = [entry for entry in manifest["databases"] if entry.get("database") == "(default)"]
    content = bytearray((backup / entry["file"]).read_bytes())
    content[4096 * 2 : 4096 * 3] = os.urandom(4096)
    (backup / entry["file"]).write_bytes(content)
    entry["sha256"] = hashlib.sha256(content).hexdigest()
    write_manifest({})
    refused(entry["file"])
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("")
    result = restore(backup, tmp_path / "data")
    assert result.returncode == 64 and [path.name for path in (tmp_path / "data").iterdir()] == ["x"]
    assert run("restore", str(backup), "--verify-only").returncode == 0


def test_an_archive_with_a_deep_folder_leaves_nothing(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as made:
        made.addfile(tarfile.TarInfo("/".join("a" * 100)))
    result = run("restore", "-", "--data", str(tmp_path / "data"), stdin=archive.getvalue())
    assert result.returncode == 73 and b"too many components" in result.stderr, result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_replaced_only_with_force(tmp_path: Path) -> None:
    with program(tmp_path) as server:
        fill(server)
        folder = tmp_path / "backup"
        folder.mkdir()
        assert back_up(server, folder).returncode == 0
        first = (folder / "manifest.json").read_text()
        refused = back_up(server, folder)
        assert refused.returncode == 64 and b"--force" in refused.stderr
        assert (folder / "manifest.json").read_text() == first
        assert back_up(server, folder, "--force").returncode == 0
        assert (folder / "manifest.json").read_text() != first
        file = tmp_path / "file"
        file.write_text("")
        assert back_up(server, file, "--force").returncode == 64
        # Another folder may hold anything, and one inside the data folder would become a part of it.
        other = tmp_path / "other"
        other.mkdir()
        (other / "mine").write_text("")
        assert back_up(server, other, "--force").returncode == 64 and (other / "mine").exists()
        assert back_up(server, tmp_path / "hearth-data", "--force").returncode == 64
        assert back_up(server, tmp_path / "hearth-data" / "backup").returncode == 64
    lost = back_up(server, folder, "--force")
    assert lost.returncode == 69 and (folder / "manifest.json").exists()
    assert leftovers(tmp_path) == []


def test_what_a_process_of_the_same_number_left_is_no_obstacle(sample: Path, tmp_path: Path) -> None:
    """In containers processes have the same number."""

    def run_after_a_kill(*words: str) -> int:
        (command, name), more = words[:2], words[2:]
        script = f'mkdir "{tmp_path / name}.partial-$$" && touch "{tmp_path / name}.partial-$$/x" && exec "$0" "$@"'
        full = [BINARY, command, *more, str(tmp_path / name)]
        return subprocess.run(["sh", "-c", script, *full], env=environment_of_a_child(), timeout=PATIENCE).returncode

    assert run_after_a_kill("restore", "data", str(sample), "--data") == 0
    with program(tmp_path, "--data", "data") as server:
        assert run_after_a_kill("backup", "backup", "--address", server.address) == 0
    assert leftovers(tmp_path) == []


def test_a_full_disk_leaves_nothing(sample: Path, tmp_path: Path) -> None:
    with program(tmp_path) as server:
        fill(server)
        result = back_up(server, tmp_path / "backup", file_bytes_max=8192)
        assert result.returncode == 73 and b"File too large" in result.stderr, result.stderr
    result = restore(sample, tmp_path / "data", file_bytes_max=8192)
    assert result.returncode == 73 and b"File too large" in result.stderr, result.stderr
    assert not (tmp_path / "backup").exists() and not (tmp_path / "data").exists() and leftovers(tmp_path) == []


def start_backup(server: Program, folder: Path | str) -> subprocess.Popen:
    command = [BINARY, "backup", str(folder), "--address", server.address]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment_of_a_child())


def large(server: Program, megabytes: int) -> None:
    for number in range(megabytes):
        fields = {"value": {"bytesValue": "x" * 900_000}}
        assert server.send("PATCH", f"/v1/{DOCUMENTS}/large/{number}", {"fields": fields})[0] == 200


def test_ends_in_the_middle_leave_nothing_that_looks_whole(tmp_path: Path) -> None:
    with program(tmp_path) as server:
        fill(server)
        large(server, 12)
        for number in range(10 * EFFORT):
            folder = tmp_path / f"backup{number}"
            kind = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT][number % 3]
            process = start_backup(server, folder)
            while process.poll() is None and not leftovers(tmp_path):
                time.sleep(0.0005)
            time.sleep(0.004 * (number % 7))
            process.send_signal(kind)
            process.communicate()
            if folder.exists():
                assert run("restore", str(folder), "--verify-only").returncode == 0
            elif kind != signal.SIGKILL:
                # Or the server was still busy with the one before.
                assert process.returncode in (128 + kind, 1), number
            if kind != signal.SIGKILL:
                assert leftovers(tmp_path) == []
            for name in leftovers(tmp_path):
                shutil.rmtree(tmp_path / name)
        # A later one isn't held up by those.
        end = time.monotonic() + PATIENCE
        while back_up(server, tmp_path / "last").returncode != 0:
            assert time.monotonic() < end
        process = start_backup(server, tmp_path / "lost")
        while not leftovers(tmp_path):
            time.sleep(0.0005)
        server.kill()
        process.communicate()
        if process.returncode != 0:
            assert process.returncode == 69 and not (tmp_path / "lost").exists()
        assert leftovers(tmp_path) == []
    assert_sound(tmp_path / "hearth-data")


def test_a_reader_that_stalls_costs_nobody_else_anything(tmp_path: Path) -> None:
    with program(tmp_path) as server:
        fill(server)
        large(server, 16)
        reader = socket.create_connection(("127.0.0.1", server.port))
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.sendall(b"GET /hearth/v1/backup HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer owner\r\n\r\n")
        assert reader.recv(12) == b"HTTP/1.1 200"

        def resident() -> int:
            return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * 4096

        before = resident()
        for number in range(50):
            assert server.send("PATCH", f"/v1/{DOCUMENTS}/c/{number}", {"fields": {}})[0] == 200
        assert resident() - before < 32 << 20
        busy = back_up(server, tmp_path / "second")
        assert busy.returncode == 1 and b"one at a time" in busy.stderr
        reader.close()
        end = time.monotonic() + PATIENCE
        while back_up(server, tmp_path / "third").returncode != 0:
            assert time.monotonic() < end
        assert server.terminate()[0] == 0


def test_backups_on_a_timer(tmp_path: Path) -> None:
    (tmp_path / "hearth.json").write_text(json.dumps({"backups": {"folder": "backups", "every": "1h", "keep": 1}}))
    with program(tmp_path) as server:
        fill(server)
        backups = tmp_path / "backups"
        end = time.monotonic() + PATIENCE
        while b"\nhearth_backup_last_success_timestamp_seconds 0\n" in server.send("GET", "/metrics")[1]:
            assert time.monotonic() < end
            time.sleep(0.05)
        (name,) = [path.name for path in backups.iterdir()]
        assert b"\nhearth_backup_failures_total 0\n" in server.send("GET", "/metrics")[1]
        log = server.terminate()[1]
        assert "backup made" in log
    assert run("restore", str(backups / name), "--verify-only").returncode == 0
    # It is not due again.
    with program(tmp_path) as server:
        assert b"hearth_backup_failures_total 0" in server.send("GET", "/metrics")[1]
        assert [path.name for path in backups.iterdir()] == [name]
    for backup, message in [
        ({"folder": "hearth-data/b"}, "inside the data folder"),
        ({"every": "1h"}, "folder"),
        ({"folder": "b", "evry": "1h"}, "every"),
        ({"folder": "b", "every": "soon"}, "duration"),
    ]:
        (tmp_path / "hearth.json").write_text(json.dumps({"backups": backup}))
        process = Program.spawn(tmp_path)
        _, complaint = process.communicate(timeout=PATIENCE)
        assert process.returncode == 78 and message in complaint, complaint


def test_a_server_in_memory_has_nothing_to_back_up(tmp_path: Path) -> None:
    with program(tmp_path, "--memory") as server:
        result = back_up(server, tmp_path / "backup")
        assert result.returncode == 1 and b"memory" in result.stderr
    assert leftovers(tmp_path) == []
