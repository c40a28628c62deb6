"""Folders of `firebase emulators:export`: read and written by `hearth export`, `hearth import` and `hearth serve`."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from endtoend.test_export import VECTORS, Proxy, Tool, moved
from endtoend.trees import Tree
from support.faults import Faults, compiler
from support.patience import PATIENCE
from support.program import BINARY, Program, assert_sound, program
from support.servers import Unavailable, emulator, free_port
from support.wire import METHODS

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

SUITE = VECTORS / "suite"
METADATA = "firebase-export-metadata.json"
DOCUMENTS = moved("suite/firestore_export", "demo-suite", "(default)")
TREE = json.loads((SUITE / "database_export" / "demo-suite.json").read_text())


@contextmanager
def served(folder: Path, *options: str) -> Iterator[Program]:
    with program(folder, "--project", "demo-suite", *options) as started:
        yield started


def tree(server: Program, namespace: str = "demo-suite") -> Any:
    made = Tree(server.address, namespace)
    try:
        return made.get(format="export")
    finally:
        made.close()


def put(server: Program, namespace: str, value: Any) -> None:
    made = Tree(server.address, namespace)
    made.put("", value)
    made.close()


def copied(tmp_path: Path, **parts: Any) -> Path:
    """A copy of the suite, with changed members of its metadata."""
    folder = tmp_path / "seed"
    shutil.copytree(SUITE, folder)
    change(folder, **parts)
    return folder


def change(folder: Path, **parts: Any) -> None:
    metadata = json.loads((folder / METADATA).read_text())
    (folder / METADATA).write_text(json.dumps({**metadata, **parts}))


def test_the_folder_of_an_empty_database_may_be_missing(tmp_path: Path) -> None:
    """git keeps no empty folders: a committed export of an emulator without data does not have it."""
    folder = copied(tmp_path)
    shutil.rmtree(folder / "database_export")
    sentence = f"{METADATA}: database.path: The folder {folder}/database_export is not there, and counts as empty."
    with served(tmp_path, "--memory") as server:
        tool = Tool(server.address, "demo-suite")
        ended = tool.run("import", str(folder))
        assert ended.returncode == 0 and sentence in ended.stderr, ended.stderr
        assert tool.lines() == DOCUMENTS and tree(server) is None
    with served(tmp_path, "--memory", "--import", str(folder)) as server:
        assert Tool(server.address, "demo-suite").lines() == DOCUMENTS
        server.process.send_signal(signal.SIGTERM)
        assert sentence in server.end()[1]


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def exported(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The documents and the databases of a suite, as another server reads them."""
    metadata = json.loads((folder / METADATA).read_text())
    assert metadata["firestore"]["path"] == "firestore_export"
    assert metadata["firestore"]["metadata_file"] == "firestore_export/firestore_export.overall_export_metadata"
    databases = {}
    if "database" in metadata:
        assert metadata["database"]["path"] == "database_export"
        databases = {path.stem: json.loads(path.read_text()) for path in (folder / "database_export").iterdir()}
    with served(folder.parent, "--memory") as server:
        tool = Tool(server.address, "demo-suite")
        tool("import", str(folder / "firestore_export"))
        return tool.lines(), databases


def test_a_suite_goes_through_a_server_and_comes_back(tmp_path: Path) -> None:
    with served(tmp_path, "--memory") as server:
        tool = Tool(server.address, "demo-suite")
        put(server, "demo-suite", {"stays": "not"})
        put(server, "demo-other", [1, {"x": True}])
        ended = tool.run("import", str(SUITE))
        assert (ended.returncode, ended.stderr) == (0, f"imported {len(DOCUMENTS)} documents, 1 database\n")
        assert tool.lines() == DOCUMENTS and tree(server) == TREE
        ended = tool.run("export", str(tmp_path / "copy"), "--format", "suite")
        assert ended.returncode == 0 and ended.stderr.startswith(f"exported {len(DOCUMENTS)} documents, 2 databases, ")
        assert tool.run("import", str(tmp_path / "copy"), "--verify-only").stderr.endswith(
            "2 databases can be imported\n"
        )
    assert exported(tmp_path / "copy") == (DOCUMENTS, {"demo-suite": TREE, "demo-other": {"0": 1, "1": {"x": True}}})


def test_servers_for_others_export_for_administrators(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the administrator's own secret")
    (tmp_path / "hearth.json").write_text('{"auth": {"credentials": [{"name": "ops", "secretFile": "secret"}]}}')
    with served(tmp_path, "--memory", "--no-emulator", "--import", str(SUITE)) as server:
        tool = Tool(server.address, "demo-suite")
        words = ("export", str(tmp_path / "copy"), "--format", "suite")
        assert tool.run(*words).returncode == 1
        tool(*words, "--credential", str(tmp_path / "secret"))
    assert exported(tmp_path / "copy") == (DOCUMENTS, {"demo-suite": TREE})


def test_what_is_outside_or_damaged_changes_nothing(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.copytree(SUITE, outside)

    def firestore(path: str) -> dict[str, Any]:
        return {"firestore": {"version": "1", "path": "firestore_export", "metadata_file": path}}

    overall = "firestore_export/firestore_export.overall_export_metadata"
    cases: list[tuple[dict[str, Any], str]] = [
        (firestore(f"../../outside/{overall}"), "outside of the export"),
        (firestore("none"), "cannot be read"),
        (firestore(f"/{overall}"), "outside of the folder"),
        (firestore("linked"), "outside of the export"),
        (firestore(""), "has no"),
        ({"database": {"version": "1", "path": "../../outside/database_export"}}, "outside of the export"),
        ({"database": {"version": "1"}}, 'has no "path"'),
        ({"database": {"version": "1", "path": overall}}, "is no folder"),
    ]
    with served(tmp_path, "--memory") as server:
        tool = Tool(server.address, "demo-suite")
        for number, (parts, reason) in enumerate(cases):
            folder = copied(tmp_path / str(number), **parts)
            (folder / "linked").symlink_to(outside / overall)
            ended = tool.run("import", str(folder))
            assert ended.returncode == 73 and reason in ended.stderr, (parts, ended.stderr)
        for name, data, reason in (
            ("demo-suite.json", '{"a": {"b": 1}', "demo-suite.json"),
            ("demo-suite.json", '{"a": {"b$": 1}}', "demo-suite.json"),
            ("demo-suite.json", '{"a": "' + "x" * 11_000_000 + '"}', "demo-suite.json"),
            ("a b.json", "1", "is no name of a Realtime Database"),
        ):
            folder = copied(tmp_path / f"{len(name)}-{len(data)}")
            (folder / "database_export" / name).write_text(data)
            ended = tool.run("import", str(folder))
            assert ended.returncode == 73 and reason in ended.stderr, ended.stderr
        folder = copied(tmp_path / "torn")
        (folder / METADATA).write_text('{"version": ')
        assert tool.run("import", str(folder)).returncode == 73
        assert tool.lines() == {} and tree(server) is None
        # What is asked for must be possible.
        for words in (
            ["import", str(SUITE), "--collection-ids", "a"],
            ["export", str(tmp_path / "x"), "--format", "suite", "--collection-ids", "a"],
            ["export", str(tmp_path / "x"), "--format", "suite", "--name", "a"],
            ["export", str(tmp_path / "x"), "--format", "suite", "--read-time", "2026-01-01T00:00:00Z"],
            ["export", str(outside), "--format", "suite"],
            ["export", str(outside / "firestore_export"), "--format", "suite", "--force"],
        ):
            assert tool.run(*words).returncode == 64, words
        assert Tool(server.address, "p", "d").run("export", str(tmp_path / "x"), "--format", "suite").returncode == 64
        assert not (tmp_path / "x").exists()


def test_parts_of_others_stay(tmp_path: Path) -> None:
    folder = copied(tmp_path, auth={"version": "14.0.0", "path": "auth_export"})
    (folder / "auth_export").mkdir()
    (folder / "auth_export" / "accounts.json").write_text('{"users": []}')
    (folder / "README").write_text("seed")
    with served(tmp_path, "--memory") as server:
        tool = Tool(server.address, "demo-suite")
        ended = tool.run("import", str(folder))
        assert ended.returncode == 0 and 'has a part "auth"' in ended.stderr
        tool("import", "-", data='{"name": "a/b", "fields": {}}\n')
        tool("export", str(folder), "--format", "suite", "--force")
    assert (folder / "auth_export" / "accounts.json").read_text() == '{"users": []}'
    assert (folder / "README").read_text() == "seed"
    assert json.loads((folder / METADATA).read_text())["auth"] == {"version": "14.0.0", "path": "auth_export"}
    assert exported(folder) == ({**DOCUMENTS, "a/b": {}}, {"demo-suite": TREE})
    assert [path.name for path in tmp_path.iterdir()] == ["seed"]


# hearth serve


def test_a_server_begins_and_ends_with_a_suite(tmp_path: Path) -> None:
    for options in (["--memory"], ["--data", "data"]):
        folder = copied(tmp_path / options[0])
        (folder / "database_export" / "demo-null.json").write_text("null")
        with served(tmp_path, *options, "--import", str(folder), "--export-on-exit") as server:
            tool = Tool(server.address, "demo-suite")
            assert tool.lines() == DOCUMENTS and tree(server) == TREE
            tool("import", "-", data='{"name": "a/b", "fields": {}}\n')
            put(server, "demo-new", 7)
            assert server.terminate()[0] == 0
        databases = {"demo-suite": TREE, "demo-null": None, "demo-new": 7}
        assert exported(folder) == ({**DOCUMENTS, "a/b": {}}, databases)
    assert_sound(tmp_path / "data")


def test_the_first_run_has_nothing_to_import(tmp_path: Path) -> None:
    for number in range(2):
        with served(tmp_path, "--memory", "--import", "seed", "--export-on-exit") as server:
            put(server, "demo-suite", number)
            Tool(server.address, "demo-suite")("import", "-", data=f'{{"name": "a/{number}", "fields": {{}}}}\n')
            # On request, too.
            assert server.send("POST", "/shutdown")[0] == 200
            assert server.end()[0] == 0
    assert exported(tmp_path / "seed") == ({"a/0": {}, "a/1": {}}, {"demo-suite": 1})


@pytest.mark.parametrize("name", ["types", "production-form"])
def test_managed_exports_are_imported_too(tmp_path: Path, name: str) -> None:
    (overall,) = (VECTORS / name).glob("*.overall_export_metadata")
    for options in (["--import", str(VECTORS / name)], ["--seed_from_export", str(overall)]):
        with served(tmp_path, "--memory", *options, "--export-on-exit=copy") as server:
            wanted = moved(name, "demo-suite", "(default)")
            assert Tool(server.address, "demo-suite").lines() == wanted
            assert server.terminate()[0] == 0
        assert exported(tmp_path / "copy") == (wanted, {})


def refused(folder: Path, *options: str) -> tuple[int, str]:
    process = Program.spawn(folder, "--project", "demo-suite", *options)
    _, log = process.communicate(timeout=PATIENCE)
    return process.returncode, log


def test_damage_ends_the_start_before_anything_is_written(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    output = folder / "firestore_export" / "all_namespaces" / "all_kinds" / "output-0"
    damaged = bytearray(output.read_bytes())
    damaged[100] ^= 1
    output.write_bytes(damaged)
    code, log = refused(tmp_path, "--data", "data", "--import", "seed")
    assert code == 73 and "output-0 at byte" in log
    assert not (tmp_path / "data").exists()
    with served(tmp_path, "--data", "data") as server:
        Tool(server.address, "demo-suite")("import", "-", data='{"name": "a/b", "fields": {}}\n')
        put(server, "demo-suite", "before")
        assert server.terminate()[0] == 0
    before = content(tmp_path / "data")
    assert refused(tmp_path, "--data", "data", "--import", "seed", "--export-on-exit")[0] == 73
    # Documents are sound, a database isn't.
    shutil.copytree(SUITE / "firestore_export", folder / "firestore_export", dirs_exist_ok=True)
    (folder / "database_export" / "demo-suite.json").write_text('{"a": tru}')
    code, log = refused(tmp_path, "--data", "data", "--import", "seed")
    assert code == 73 and "demo-suite.json" in log
    assert content(tmp_path / "data") == before
    assert refused(tmp_path, "--memory", "--import", "none")[0] == 73
    (tmp_path / "empty").mkdir()
    code, log = refused(tmp_path, "--memory", "--import", "empty", "--export-on-exit")
    assert code == 73
    assert "empty: it has neither firebase-export-metadata.json nor a file *.overall_export_metadata." in log
    assert refused(tmp_path, "--memory", "--import", str(VECTORS / "types.ndjson"))[0] == 64


def test_folders_that_cannot_be_exported_to(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_text("mine")
    (tmp_path / "empty").mkdir()
    for options in (
        ["--memory", "--export-on-exit"],
        ["--memory", "--export-on-exit", "mine"],
        ["--memory", "--export-on-exit", "."],
        ["--memory", "--export-on-exit", ".."],
        ["--memory", "--export-on-exit", str(tmp_path)],
        ["--memory", "--import", str(VECTORS / "types"), "--export-on-exit"],
        ["--memory", "--import", str(SUITE), "--seed_from_export", "x"],
        ["--data", "empty", "--export-on-exit", "empty"],
        ["--data", "empty", "--export-on-exit", "empty/x"],
        ["--data", "y/data", "--export-on-exit", "y"],
    ):
        if options[-1] == "y":
            shutil.copytree(SUITE, tmp_path / "y")
        code, log = refused(tmp_path, *options)
        assert code == 64, (options, log)
    assert content(tmp_path / "mine") == {"x": b"mine"}


def test_an_export_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    before = content(folder)
    server = Program(
        tmp_path, "--project", "demo-suite", "--memory", "--import", "seed", "--export-on-exit", file_bytes_max=64
    )
    put(server, "demo-suite", "x" * 100)
    code, log = server.terminate()
    assert code == 73 and "File too large" in log
    assert content(folder) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seed"]


def wait_for(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
def test_a_second_signal_ends_the_export(tmp_path: Path) -> None:
    work = tmp_path / "work"
    folder = copied(work)
    before = content(folder)
    faults = Faults(tmp_path, work)
    with program(
        work,
        "--project",
        "demo-suite",
        "--memory",
        "--import",
        "seed",
        "--export-on-exit",
        environment=faults.environment,
    ) as server:
        faults.slow(60)
        server.process.send_signal(signal.SIGINT)
        # Its first sync does not end.
        wait_for(lambda: list(work.glob("seed.partial-*")))
        server.process.send_signal(signal.SIGTERM)
        assert server.end()[0] == -signal.SIGTERM
    assert content(folder) == before
    assert not list(work.glob(f"seed.partial-*/{METADATA}"))


# Triggers

WRITTEN = "google.cloud.firestore.document.v1.written"


def test_an_import_without_triggers(tmp_path: Path) -> None:
    definition = {"event": WRITTEN, "document": "{all=**}", "url": "http://127.0.0.1:1/", "paused": True}
    (tmp_path / "hearth.json").write_text(json.dumps({"triggers": {"all": definition}}))
    # A commit that a worker decodes.
    large = "".join(f'{{"name":"c/{n}","fields":{{"s":{{"stringValue":"{"x" * 200}"}}}}}}\n' for n in range(300))
    with served(tmp_path, "--memory", "--import", str(SUITE)) as server:
        triggers = Tool(server.address, "demo-suite")
        triggers.command, triggers.options = ("triggers",), ["--address", server.address]

        def pending() -> int:
            return int(json.loads(triggers("show", "all", "--json"))["pending"])

        tool = Tool(server.address, "demo-suite")
        assert tool.lines() == DOCUMENTS and pending() == 0
        tool("import", "-", "--no-triggers", data=large)
        tool("import", str(SUITE), "--no-triggers")
        assert len(tool.lines()) == len(DOCUMENTS) + 300 and pending() == 0
        # What changes nothing makes no event.
        tool("import", "-", data=large.replace("xx", "yy"))
        assert pending() == 300


class Stranger(grpc.GenericRpcHandler):
    """A server that knows only Google's API, and says yes to everything."""

    def __init__(self) -> None:
        self.writes = 0

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        def commit(request: Any, _: grpc.ServicerContext) -> bytes:
            self.writes += len(request.writes)
            return b""

        return grpc.unary_unary_rpc_method_handler(commit, METHODS["Commit"].request.FromString)


def test_servers_that_do_not_know_the_header_get_no_import_without_triggers() -> None:
    stranger, port = Stranger(), free_port()
    server = grpc.server(ThreadPoolExecutor(1), handlers=[stranger])
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        tool = Tool(f"127.0.0.1:{port}", "demo-suite")
        ended = tool.run("import", str(SUITE / "firestore_export"), "--no-triggers")
        assert ended.returncode == 1 and "doesn't know --no-triggers" in ended.stderr, ended.stderr
        assert stranger.writes == 0
        tool("import", str(SUITE / "firestore_export"))
        assert stranger.writes == len(DOCUMENTS)
    finally:
        server.stop(None)


# Ends in the middle


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_import_says_how_many_are_in(tmp_path: Path, kind: signal.Signals) -> None:
    data = "".join(f'{{"name":"c/{n}","fields":{{"s":{{"stringValue":"{"x" * 1000}"}}}}}}\n' for n in range(20_000))
    (tmp_path / "lines").write_text(data)
    with served(tmp_path, "--memory") as server:
        proxy = Proxy(server.address, bytes_max=60_000)
        process = Tool(proxy.address, "demo-suite").start("import", str(tmp_path / "lines"))
        assert proxy.holds.wait(PATIENCE)
        process.send_signal(kind)
        _, log = process.communicate(timeout=PATIENCE)
        proxy.close()
        assert process.returncode == 128 + kind
        said = int(log.split("at least ")[1].split(" ")[0].replace(",", ""))
        assert 0 < said <= len(Tool(server.address, "demo-suite").lines()) < 20_000
    with served(tmp_path, "--memory") as server:
        proxy = Proxy(server.address, bytes_max=20_000)
        Tool(server.address, "demo-suite")("import", str(SUITE))
        put(server, "demo-suite", "x" * 1_000_000)
        process = Tool(proxy.address, "demo-suite").start("export", str(tmp_path / "copy"), "--format", "suite")
        assert proxy.holds.wait(PATIENCE)
        process.send_signal(kind)
        process.communicate(timeout=PATIENCE)
        proxy.close()
        assert process.returncode == 128 + kind
    assert [path.name for path in tmp_path.iterdir()] == ["lines"]


# Google's emulator


def test_the_emulator_begins_with_a_suite_of_ours(tmp_path: Path) -> None:
    with served(tmp_path, "--memory", "--import", str(VECTORS / "types"), "--export-on-exit", "ours") as server:
        assert server.terminate()[0] == 0
    metadata = json.loads((tmp_path / "ours" / METADATA).read_text())
    overall = tmp_path / "ours" / metadata["firestore"]["metadata_file"]
    try:
        with emulator(f"--seed_from_export={overall}", "--project_id=demo-suite") as google:
            there = Tool(google, "demo-suite")
            assert there.lines() == moved("types", "demo-suite", "(default)")
            # The emulator has no Realtime Database.
            ended = there.run("export", str(tmp_path / "theirs"), "--format", "suite")
            assert ended.returncode == 1 and not (tmp_path / "theirs").exists()
            there("export", str(tmp_path / "back"))
    except Unavailable as reason:
        pytest.skip(str(reason))
    with served(tmp_path, "--memory", "--import", "back") as server:
        assert Tool(server.address, "demo-suite").lines() == moved("types", "demo-suite", "(default)")
