"""`hearth export` and `hearth import`, against Hearth and, where it is installed, Google's emulator."""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from support import tool
from support.patience import PATIENCE
from support.program import BINARY
from support.servers import Unavailable, emulator, hearth
from support.wire import METHODS, parse

VECTORS = Path(__file__).parents[2] / "Vectors" / "export"
#: Folders, with the projects and databases that they are of.
EXPORTS = {
    "types": ("demo-export", "(default)"),
    "named-database": ("demo-export", "second"),
    "blocks": ("demo-blocks", "(default)"),
    "production-form": ("my-prod", "(default)"),
    "production-form-filtered": ("my-prod", "(default)"),
    "suite/firestore_export": ("demo-suite", "(default)"),
    "empty": ("demo-empty", "(default)"),
}
DAMAGED = json.loads((VECTORS / "damaged.json").read_text())


class Tool(tool.Tool):
    def __init__(self, address: str, project: str, database: str = "(default)") -> None:
        super().__init__(options=["--address", address, "--project", project, "--database", database])

    def lines(self) -> dict[str, Any]:
        return lines(self("export", "-", "--format", "ndjson", "--quiet"))


def lines(content: str) -> dict[str, Any]:
    """Documents by their names; the sign of zero is kept."""
    documents = [json.loads(line, parse_float=str) for line in content.splitlines()]
    found = {document["name"]: normal(document["fields"]) for document in documents}
    assert len(found) == len(documents)
    return found


def normal(value: Any) -> Any:
    """Numbers in one notation."""
    if isinstance(value, dict):
        members = {name: normal(one) for name, one in value.items()}
        if "doubleValue" in members:
            members["doubleValue"] = repr(float(members["doubleValue"]))
        if "geoPointValue" in members:
            point = members["geoPointValue"]
            members["geoPointValue"] = [repr(float(point.get(name, 0))) for name in ("latitude", "longitude")]
        return members
    return [normal(one) for one in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    try:
        with hearth() as started:
            yield started
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def google() -> Iterator[str]:
    if not BINARY:
        pytest.skip("HEARTH_BINARY names no program")
    try:
        with emulator() as started:
            yield started
    except Unavailable as reason:
        pytest.skip(str(reason))


def expected(name: str) -> dict[str, Any]:
    path = VECTORS / f"{name.split('/')[0]}.ndjson"
    return lines(path.read_text()) if path.exists() else {}


def moved(name: str, project: str, database: str) -> dict[str, Any]:
    """What the folder holds, with the references into the source changed."""
    source = "projects/{}/databases/{}/".format(*EXPORTS[name])
    return json.loads(json.dumps(expected(name)).replace(source, f"projects/{project}/databases/{database}/"))


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_go_through_a_server_and_come_back(server: str, tmp_path: Path, name: str) -> None:
    project = f"first-{list(EXPORTS).index(name)}"
    first, second = Tool(server, project), Tool(server, project, "second")
    first("import", str(VECTORS / name))
    assert first.lines() == moved(name, project, "(default)")
    first("export", str(tmp_path / "copy"))
    second("import", str(tmp_path / "copy"))
    assert second.lines() == moved(name, project, "second")
    # Again, from the file that names the others, and as lines: these do not say where they come from.
    (overall,) = (tmp_path / "copy").glob("*.overall_export_metadata")
    second("import", str(overall), "--keep-references")
    assert second.lines() == first.lines()
    second("import", "-", data=first("export", "-", "--format", "ndjson"))
    assert second.lines() == first.lines()


@pytest.mark.parametrize("damage", DAMAGED, ids=lambda damage: damage["name"])
def test_a_damaged_export_changes_nothing(server: str, tmp_path: Path, damage: dict[str, Any]) -> None:
    tool = Tool(server, f"damaged-{DAMAGED.index(damage)}")
    copy = tmp_path / "copy"
    shutil.copytree(VECTORS / damage["base"], copy)
    suffix = {"output": "output-0", "metadata": "*.export_metadata", "overall": "*.overall_export_metadata"}
    (path,) = copy.rglob(suffix[damage["file"]])
    content = bytearray(path.read_bytes())
    if damage["do"] == "flip":
        content[damage["at"]] ^= 1
    path.write_bytes(content[: damage["at"]] if damage["do"] == "cut" else content)
    if damage["do"] == "remove":
        path.unlink()
    ended = tool.run("import", str(copy))
    assert ended.returncode == 73, ended.stderr
    assert str(copy) in ended.stderr
    assert tool.run("import", str(copy), "--verify-only").returncode == 73
    assert tool.lines() == {}


def test_what_a_database_would_refuse_is_found_before_the_first_write(server: str, tmp_path: Path) -> None:
    tool = Tool(server, "refused")
    good = '{"name":"a/%d","fields":{}}\n'
    bad = '{"name":"a/b","fields":{"__x__":{"nullValue":null}}}\n'
    path = tmp_path / "lines"
    path.write_text("".join(good % number for number in range(3000)) + bad)
    ended = tool.run("import", str(path))
    assert (ended.returncode, "lines:3001: a/b: field name __x__ is reserved" in ended.stderr) == (73, True), (
        ended.stderr
    )
    assert tool.lines() == {}
    # Without the check the server refuses it, and the message says which and how much is in.
    ended = tool.run("import", str(path), "--no-verify")
    assert ended.returncode == 1
    assert "a/b: " in ended.stderr and "documents are in" in ended.stderr
    # The same name twice: the last counts.
    twice = "".join(f'{{"name":"b/c","fields":{{"n":{{"integerValue":"{n}"}}}}}}\n' for n in range(50))
    tool("import", "-", data=twice)
    assert tool.lines()["b/c"] == {"n": {"integerValue": "49"}}


def test_collection_groups(server: str, tmp_path: Path) -> None:
    tool, other = Tool(server, "groups"), Tool(server, "groups-2")
    tool("import", str(VECTORS / "production-form"))
    tool("export", str(tmp_path / "copy"), "--collection-ids", "orders,none", "--name", "n")
    assert (tmp_path / "copy" / "n.overall_export_metadata").exists()
    assert (tmp_path / "copy" / "all_namespaces" / "kind_orders" / "output-0").exists()
    other("import", str(tmp_path / "copy"))
    assert list(other.lines()) == ["users/u1/orders/__id12__"]
    other("import", str(VECTORS / "production-form"), "--collection-ids", "notes,users")
    assert len(other.lines()) == 1 + sum("/orders/" not in name for name in expected("production-form"))


def test_ids_of_other_bytes_are_others(server: str, tmp_path: Path) -> None:
    """Two spellings of an accent."""
    tool, other = Tool(server, "spelling"), Tool(server, "spelling-2")
    one, two = "caf\u00e9", "cafe\u0301"
    tool("import", "-", data=f'{{"name":"{one}/a","fields":{{}}}}\n{{"name":"{two}/a","fields":{{}}}}\n')
    tool("export", str(tmp_path / "both"), "--collection-ids", f"{one},{two}")
    other("import", str(tmp_path / "both"), "--collection-ids", two)
    assert list(other.lines()) == [f"{two}/a"]


def test_what_is_no_file_is_not_replaced(server: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    ended = Tool(server, "special").run("export", str(tmp_path / "pipe"), "--format", "ndjson", "--force")
    assert ended.returncode == 64 and (tmp_path / "pipe").is_fifo(), ended.stderr


def test_folders_that_cannot_be_replaced_are_refused_at_once(server: str, tmp_path: Path) -> None:
    tool = Tool(server, "replaced")
    tool.folder = tmp_path
    ended = tool.run("export", ".", "--name", "x")
    assert ended.returncode == 64 and "started in" in ended.stderr
    ended = tool.run("export", "/proc", "--force")
    assert ended.returncode == 64 and "root of a file system" in ended.stderr
    # The folder that a link names is replaced.
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    tool("export", "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there" / "link.overall_export_metadata").exists()


def test_signals_do_not_wait_for_readers_of_standard_output(server: str) -> None:
    tool = Tool(server, "unread")
    line = '{"name":"a/%d","fields":{"s":{"stringValue":"' + "x" * 9000 + '"}}}\n'
    tool("import", "-", data="".join(line % number for number in range(100)))
    process = tool.start("export", "-", "--format", "ndjson")
    assert process.stdout is not None
    waiting = bytearray(4)
    # It is in a write that is larger than the pipe.
    while int.from_bytes(waiting, sys.byteorder) < 60_000:
        fcntl.ioctl(process.stdout.fileno(), termios.FIONREAD, waiting)
        assert process.poll() is None
    process.terminate()
    assert process.wait(PATIENCE) == 128 + signal.SIGTERM
    process.communicate()


def test_nobody_reads_standard_output(server: str, tmp_path: Path) -> None:
    tool = Tool(server, "closed")
    tool("import", "-", data='{"name":"a/b","fields":{}}\n')
    process = tool.start("export", "-", "--format", "ndjson")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    assert (process.wait(PATIENCE), process.communicate()[1]) == (73, "hearth: Cannot write standard output: Broken pipe.\n")
    # A descriptor that is closed must not become that of another file.
    command = [BINARY, "export", "-", "--format", "ndjson", *tool.options]
    ended = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', *command], capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 73 and "Bad file descriptor" in ended.stderr, ended.stderr


def test_wrong_usage(server: str, tmp_path: Path) -> None:
    tool = Tool(server, "usage")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("mine")
    for words in (
        ["export"],
        ["export", str(tmp_path / "full")],
        ["export", str(tmp_path / "full" / "x")],
        ["export", str(tmp_path / "full" / "x"), "--format", "ndjson"],
        ["export", "-"],
        ["export", str(tmp_path / "y"), "--format", "csv"],
        ["export", str(tmp_path / "y"), "--read-time", "yesterday"],
        ["export", str(tmp_path / "y"), "--collection-ids", "a/b"],
        ["import"],
        ["import", str(tmp_path), "--no-verify", "--verify-only"],
        ["import", str(tmp_path), "--nothing"],
    ):
        ended = tool.run(*words)
        assert ended.returncode == 64, (words, ended.stderr)
    assert (tmp_path / "full" / "x").read_text() == "mine"
    assert tool.run("import", str(tmp_path / "none")).returncode == 73
    assert tool.run("import", str(tmp_path / "full")).returncode == 73
    assert tool.run("import", str(tmp_path / "full" / "x")).returncode == 73
    assert tool.run("export", str(tmp_path / "no" / "folder")).returncode == 73
    assert Tool("127.0.0.1:1", "usage").run("export", str(tmp_path / "y")).returncode == 69
    ended = tool.run("export", str(tmp_path / "y"), "--read-time", "2999-01-01T00:00:00Z")
    assert ended.returncode == 1, ended.stderr
    # Whatever it holds, it is no export.
    assert tool.run("export", str(tmp_path / "full"), "--force").returncode == 64
    (tmp_path / "full" / "x").unlink()
    (tmp_path / "full" / "old.overall_export_metadata").write_text("")
    ended = tool.run("export", str(tmp_path / "full"), "--force")
    assert (ended.returncode, ended.stderr) == (0, "exported 0 documents of projects/usage/databases/(default), 0 B\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full"]
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["full.overall_export_metadata"]


# While others write


class Writers:
    """Moves amounts between documents, each in a transaction of a commit with the sum unchanged."""

    COUNT = 40

    def __init__(self, address: str, project: str) -> None:
        self.address = address
        self.root = f"projects/{project}/databases/(default)/documents"
        self.isOver = threading.Event()
        self.commits = 0
        self.threads = [threading.Thread(target=self.move, args=(number,)) for number in range(4)]

    def __enter__(self) -> Writers:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.isOver.set()
        for thread in self.threads:
            thread.join()

    def increment(self, number: int, amount: int) -> dict[str, Any]:
        transform = {"fieldPath": "n", "increment": {"integerValue": str(amount)}}
        return {"update": {"name": f"{self.root}/accounts/{number}"}, "updateMask": {}, "updateTransforms": [transform]}

    def move(self, number: int) -> None:
        method = METHODS["Commit"]
        with grpc.insecure_channel(self.address) as channel:
            call = channel.unary_unary(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )
            step = number
            while not self.isOver.is_set():
                step += 1
                one, other = step * 7 % self.COUNT, (step * 13 + 1) % self.COUNT
                writes = [self.increment(one, step), self.increment(other, -step)]
                body = {"database": self.root.removesuffix("/documents"), "writes": writes}
                call(parse(method, body), metadata=[("authorization", "Bearer owner")])
                self.commits += 1


def test_an_export_under_writers_is_of_one_moment(server: str, tmp_path: Path) -> None:
    tool = Tool(server, "moving")
    accounts = [f'{{"name":"accounts/{n}","fields":{{"n":{{"integerValue":"100"}}}}}}\n' for n in range(Writers.COUNT)]
    others = [f'{{"name":"accounts/0/x/{n}","fields":{{}}}}\n' for n in range(2000)]
    tool("import", "-", data="".join(accounts + others))
    with Writers(server, "moving") as writers:
        while writers.commits < 20:
            time.sleep(0.01)
        for number in range(3):
            before = writers.commits
            tool("export", str(tmp_path / str(number)))
            documents = Tool(server, f"moved-{number}")
            documents("import", str(tmp_path / str(number)))
            found = documents.lines()
            assert len(found) == Writers.COUNT + 2000
            sums = [int(fields["n"]["integerValue"]) for name, fields in found.items() if "/x/" not in name]
            assert sum(sums) == 100 * Writers.COUNT
            assert writers.commits > before


# Ends in the middle


class Proxy:
    """Passes bytes between a client and a server, and can stop, or break each connection after some of them."""

    def __init__(self, address: str, *, bytes_max: int | None = None, breaks: int = 0) -> None:
        host, port = address.rsplit(":", 1)
        self.target = (host, int(port))
        self.bytes_max, self.breaks = bytes_max, breaks
        self.broken = 0
        self.holds = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            upstream = socket.create_connection(self.target)
            for source, sink, isAnswer in ((client, upstream, False), (upstream, client, True)):
                threading.Thread(target=self.copy, args=(source, sink, isAnswer), daemon=True).start()

    def copy(self, source: Any, sink: Any, isAnswer: bool) -> None:
        passed = 0
        limit = self.bytes_max if isAnswer and self.broken < self.breaks else None
        try:
            while data := source.recv(4096):
                passed += len(data)
                if limit is not None and passed > limit:
                    self.broken += 1
                    break
                if isAnswer and self.bytes_max is not None and not self.breaks and passed > self.bytes_max:
                    self.holds.set()
                    time.sleep(60)
                    break
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.listener.close()


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("form", ["google", "ndjson"])
def test_an_interrupted_export_leaves_nothing(server: str, tmp_path: Path, kind: signal.Signals, form: str) -> None:
    tool = Tool(server, "types-interrupted")
    tool("import", str(VECTORS / "blocks"))
    proxy = Proxy(server, bytes_max=20_000)
    process = Tool(proxy.address, "types-interrupted").start("export", str(tmp_path / "x"), "--format", form)
    assert proxy.holds.wait(PATIENCE)
    process.send_signal(kind)
    process.communicate(timeout=PATIENCE)
    proxy.close()
    assert process.returncode == 128 + kind
    assert list(tmp_path.iterdir()) == []


def test_a_lost_connection_is_opened_again(server: str, tmp_path: Path) -> None:
    tool = Tool(server, "lost")
    proxy = Proxy(server, bytes_max=30_000, breaks=4)
    through = Tool(proxy.address, "lost")
    tool("import", str(VECTORS / "blocks"))
    through("export", str(tmp_path / "x"))
    assert proxy.broken == 4
    other = Tool(server, "lost-2")
    other("import", str(tmp_path / "x"))
    assert other.lines() == tool.lines()
    proxy.close()
    # Commits whose answers are lost are sent again.
    content = "".join(f'{{"name":"a/{n}","fields":{{"n":{{"integerValue":"{n}"}}}}}}\n' for n in range(6000))
    proxy = Proxy(server, bytes_max=400, breaks=3)
    Tool(proxy.address, "lost-3")("import", "-", data=content)
    assert proxy.broken == 3
    assert Tool(server, "lost-3").lines() == lines(content)
    proxy.close()


# Google's emulator


def emulator_call(address: str, method: str, database: str, **body: str) -> None:
    connection = http.client.HTTPConnection(*address.rsplit(":", 1), timeout=PATIENCE)
    project = database.split("/")[1]
    connection.request(
        "POST",
        f"/emulator/v1/projects/{project}:{method}",
        json.dumps({"database": database, **body}),
        {"content-type": "application/json", "authorization": "Bearer owner"},
    )
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    assert answer.status == 200, content


@pytest.mark.parametrize("name", ["types", "named-database", "blocks"])
def test_the_emulator_reads_what_is_exported(google: str, server: str, tmp_path: Path, name: str) -> None:
    project, database = EXPORTS[name]
    tool = Tool(server, project, database)
    tool("import", str(VECTORS / name))
    tool("export", str(tmp_path / "copy"))
    (overall,) = (tmp_path / "copy").glob("*.overall_export_metadata")
    emulator_call(google, "import", f"projects/{project}/databases/{database}", export_directory=str(overall))
    assert Tool(google, project, database).lines() == expected(name)


@pytest.mark.parametrize("name", ["types", "named-database", "blocks"])
def test_the_emulator_is_exported_and_imported(google: str, server: str, tmp_path: Path, name: str) -> None:
    _, database = EXPORTS[name]
    there, here = Tool(google, f"demo-there-{name}", database), Tool(server, f"demo-there-{name}", database)
    there("import", str(VECTORS / name), "--keep-references")
    assert there.lines() == expected(name)
    there("export", str(tmp_path / "copy"))
    here("import", str(tmp_path / "copy"))
    assert here.lines() == there.lines()
    emulator_call(
        google,
        "export",
        f"projects/demo-there-{name}/databases/{database}",
        export_directory=str(tmp_path),
        export_name="own",
    )
    again = Tool(server, f"demo-again-{name}", database)
    again("import", str(tmp_path / "own"), "--keep-references")
    assert again.lines() == expected(name)
