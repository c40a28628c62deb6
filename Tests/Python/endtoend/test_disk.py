"""A full disk: the log, `/readyz` and `/metrics`, for both products; and the permissions of the files.

The bound on the size of files (`ulimit -f`) simulates a full disk: it applies to one process, and can be lifted while
that runs. The signal that it causes must not end the server.
"""

from __future__ import annotations

import resource
import shutil
import stat
import time
from pathlib import Path

import pytest

from support.patience import PATIENCE
from support.program import BINARY, Program, assert_sound, program

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

LIMIT_BYTES = 3 << 20
VALUE = "x" * 200_000


def put(server: Program, product: str, number: int) -> int:
    if product == "firestore":
        path = f"/v1/projects/d/databases/(default)/documents/c/{number}"
        return server.send("PATCH", path, {"fields": {"text": {"bytesValue": VALUE}}})[0]
    return server.send("PUT", f"/c/{number}.json?ns=d", VALUE)[0]


def get(server: Program, product: str, number: int) -> int:
    if product == "firestore":
        return server.send("GET", f"/v1/projects/d/databases/(default)/documents/c/{number}")[0]
    return server.send("GET", f"/c/{number}.json?ns=d")[0]


def metric(server: Program, name: str) -> float:
    lines = server.send("GET", "/metrics")[1].decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((name + " ", name + "{")))


def wait_until(condition, seconds: float = PATIENCE) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("product", ["firestore", "realtime"])
def test_a_disk_without_room_is_reported_and_readiness_follows(tmp_path: Path, product: str) -> None:
    server = Program(tmp_path, file_bytes_max=LIMIT_BYTES)
    try:
        assert server.send("GET", "/readyz") == (200, b"Ok\n")
        statuses = [put(server, product, number) for number in range(40)]
        stored = statuses.index(503)
        assert stored > 3 and set(statuses[:stored]) == {200} and statuses[-1] == 503, statuses
        status, reason = server.send("GET", "/readyz")
        assert status == 503 and b"File too large" in reason, reason
        assert metric(server, "hearth_databases_failing") == 1
        assert metric(server, "hearth_store_commits_failed") > 0
        # Reads continue, and failed writes are not stored.
        assert [get(server, product, number) for number in range(stored)] == [200] * stored
        assert server.send("GET", "/healthz")[0] == 200
        # Tried again automatically, more than once: the disk is unchanged.
        time.sleep(2.5)
        assert server.send("GET", "/readyz")[0] == 503
        # There is space again, without writes.
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert wait_until(lambda: server.send("GET", "/readyz")[0] == 200)
        assert [put(server, product, number) for number in range(100, 110)] == [200] * 10
        assert metric(server, "hearth_databases_failing") == 0
        assert metric(server, "hearth_checkpoints_unsafe") == 0
        code, log = server.terminate()
    finally:
        if server.process.poll() is None:
            server.kill()
    assert code == 0, log
    records = [line for line in log.splitlines() if "commits" in line]
    assert len(records) == 2 and "commits fail" in records[0] and "commits succeed again" in records[1], log
    assert_sound(tmp_path / "hearth-data")


def test_the_data_is_for_its_owner_only(tmp_path: Path) -> None:
    server = Program(tmp_path)
    try:
        for product in ["firestore", "realtime"]:
            assert put(server, product, 1) == 200
        rules = server.send("PUT", "/.settings/rules.json?ns=d&access_token=owner", {"rules": {".read": True, ".write": True}})
        assert rules[0] == 200, rules
        data = tmp_path / "hearth-data"
        found = [data, *data.rglob("*")]
        assert len(found) > 6
        open_to_others = [str(path) for path in found if stat.S_IMODE(path.stat().st_mode) & 0o077]
        assert open_to_others == []
    finally:
        server.kill()
    # In the state of an older version.
    data.chmod(0o755)
    server = Program(tmp_path)
    _, log = server.terminate()
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert log.count("Other users of this machine could read the data folder") == 1, log


def database_file(folder: Path, product: str) -> Path:
    return folder / "hearth-data" / ("d/(default).sqlite" if product == "firestore" else "+realtime/namespaces/d.sqlite")


def log_folder(folder: Path, product: str) -> Path:
    file = database_file(folder, product)
    return file.with_name(file.name + "-log")


@pytest.mark.parametrize("way", ["removed", "moved", "emptied"])
@pytest.mark.parametrize("product", ["firestore", "realtime"])
def test_a_log_that_disappears_is_noticed_and_nothing_is_lost(tmp_path: Path, product: str, way: str) -> None:
    server = Program(tmp_path)
    try:
        assert [put(server, product, number) for number in range(3)] == [200] * 3
        log = log_folder(tmp_path, product)
        assert any(log.iterdir())
        if way == "removed":
            shutil.rmtree(log)
        elif way == "moved":
            log.rename(log.with_name("elsewhere"))
        else:
            for path in list(log.iterdir()):
                path.unlink()
        # Not acknowledged: a kill would lose it.
        assert put(server, product, 10) == 503
        # The memory has what the log had. When the file has it, too, another log begins.
        assert wait_until(lambda: put(server, product, 11) == 200)
        assert wait_until(lambda: server.send("GET", "/readyz")[0] == 200)
        output = server.kill()
    finally:
        if server.process.poll() is None:
            server.kill()
    assert "commits fail" in output and "A file of the log was deleted or replaced" in output, output
    assert_sound(tmp_path / "hearth-data")
    with program(tmp_path) as server:
        assert [get(server, product, number) for number in [0, 1, 2, 11]] == [200] * 4
        found = get(server, product, 10)
        assert found == 404 if product == "firestore" else found == 200
        server.terminate()


@pytest.mark.parametrize("product", ["firestore", "realtime"])
def test_files_that_disappear_are_noticed_without_a_write(tmp_path: Path, product: str) -> None:
    with program(tmp_path) as server:
        assert put(server, product, 0) == 200
        database_file(tmp_path, product).rename(tmp_path / "elsewhere")
        assert wait_until(lambda: server.send("GET", "/readyz")[0] == 503)
        assert b".sqlite was deleted or replaced" in server.send("GET", "/readyz")[1]
        assert put(server, product, 1) == 503
        # It is there again, with everything.
        (tmp_path / "elsewhere").rename(database_file(tmp_path, product))
        assert wait_until(lambda: put(server, product, 2) == 200)
        server.kill()
    assert_sound(tmp_path / "hearth-data")
