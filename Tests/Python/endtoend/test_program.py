"""The program from outside: its start and end, its folder, its exit codes, its figures."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from support.patience import PATIENCE
from support.program import BINARY, Program, environment_of_a_child, program
from support.wire import METHODS, parse

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

DOCUMENT = "/v1/projects/p/databases/(default)/documents/c/d"


def put(hearth: Program, value: int) -> int:
    return hearth.send("PATCH", DOCUMENT, {"fields": {"n": {"integerValue": str(value)}}})[0]


def refused(folder: Path, *options: str) -> tuple[int, str]:
    """The exit code and the message of a start that fails."""
    ended = subprocess.run(
        [BINARY, "serve", *options],
        cwd=folder,
        env=environment_of_a_child(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ended.stdout == ""
    return ended.returncode, ended.stderr


class TestStartAndEnd:
    def test_the_start_says_what_to_export(self, tmp_path: Path) -> None:
        (tmp_path / ".firebaserc").write_text('{"projects": {"default": "shop"}}')
        with program(tmp_path) as hearth:
            assert hearth.block[0].startswith("Hearth ")
            assert f"export FIRESTORE_EMULATOR_HOST=127.0.0.1:{hearth.port}" in hearth.block
            assert any(line.startswith("project") and line.endswith("shop") for line in hearth.block)
            assert any(line.startswith("data") and line.endswith(str(tmp_path / "hearth-data")) for line in hearth.block)

    @pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_ends_it_in_order(self, tmp_path: Path, sent: signal.Signals) -> None:
        with program(tmp_path) as hearth:
            assert put(hearth, 1) == 200
            hearth.process.send_signal(sent)
            code, log = hearth.end()
            assert code == 0
            assert "stopped" in log

    def test_shutdown_over_http(self, tmp_path: Path) -> None:
        with program(tmp_path, "--memory") as hearth:
            assert hearth.send("POST", "/shutdown")[0] == 200
            assert hearth.end()[0] == 0
        with program(tmp_path, "--memory", "--no-emulator") as hearth:
            assert hearth.send("POST", "/shutdown")[0] == 404
            assert hearth.send("DELETE", "/emulator/v1/projects/p/databases/(default)/documents")[0] == 404

    def test_a_second_signal_does_not_wait(self, tmp_path: Path) -> None:
        with program(tmp_path, "--memory", "--grace", "60") as hearth, grpc.insecure_channel(
            f"127.0.0.1:{hearth.port}"
        ) as channel:
            # A call that stays open: its request never ends.
            held = threading.Event()

            def messages() -> Iterator[bytes]:
                held.wait(PATIENCE)
                yield b""

            method = METHODS["RunQuery"]
            call = channel.stream_unary(method.path)
            future = call.future(messages())
            assert hearth.send("GET", "/")[0] == 200
            wait_until_open(hearth)
            hearth.process.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                hearth.process.wait(0.5)
            hearth.process.send_signal(signal.SIGTERM)
            assert hearth.end()[0] == -signal.SIGTERM
            held.set()
            future.cancel()


def wait_until_open(hearth: Program) -> None:
    """Waits until the server has an open stream."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for line in hearth.send("GET", "/metrics")[1].decode().splitlines():
            if line.startswith("hearth_streams_open ") and int(line.split()[1]) > 0:
                return
        time.sleep(0.02)
    raise AssertionError("no stream was opened")


class TestFolder:
    def test_what_was_acknowledged_outlives_sigkill(self, tmp_path: Path) -> None:
        for number in range(3):
            with program(tmp_path) as hearth:
                status, content = hearth.send("GET", DOCUMENT)
                if number > 0:
                    assert json.loads(content)["fields"]["n"]["integerValue"] == str(number - 1)
                else:
                    assert status == 404
                assert put(hearth, number) == 200
                hearth.process.kill()
                hearth.end()

    def test_memory_leaves_nothing(self, tmp_path: Path) -> None:
        with program(tmp_path, "--memory") as hearth:
            assert put(hearth, 1) == 200
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_has_one_process(self, tmp_path: Path) -> None:
        with program(tmp_path) as hearth:
            code, text = refused(tmp_path, "--port", "0")
            assert code == 73
            assert f"Another hearth process ({hearth.process.pid}) uses the data folder" in text

    def test_indexes_of_the_project(self, tmp_path: Path) -> None:
        (tmp_path / "firebase.json").write_text('{"firestore": {"indexes": "indexes.json"}}')
        fields = [{"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "b", "order": "ASCENDING"}]
        (tmp_path / "indexes.json").write_text(json.dumps({"indexes": [{"collectionGroup": "c", "fields": fields}]}))
        with program(tmp_path, "--require-indexes") as hearth:
            def query(second: str) -> int:
                where = {"fieldFilter": {"field": {"fieldPath": "a"}, "op": "EQUAL", "value": {"integerValue": "1"}}}
                order = [{"field": {"fieldPath": second}}]
                body = {"structuredQuery": {"from": [{"collectionId": "c"}], "where": where, "orderBy": order}}
                return hearth.send("POST", "/v1/projects/p/databases/(default)/documents:runQuery", body)[0]

            put(hearth, 1)
            deadline = time.monotonic() + PATIENCE
            while query("b") != 200:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert query("z") == 400

    def test_a_field_without_indexes_cannot_be_filtered_with_required_indexes(self, tmp_path: Path) -> None:
        override = {"collectionGroup": "c", "fieldPath": "a", "indexes": []}
        (tmp_path / "firestore.indexes.json").write_text(json.dumps({"indexes": [], "fieldOverrides": [override]}))

        def answers(*options: str) -> list[int]:
            with program(tmp_path, "--memory", *options) as hearth:
                put(hearth, 1)

                def query(op: str, value: dict[str, object], name: str = "a") -> int:
                    where = {"fieldFilter": {"field": {"fieldPath": name}, "op": op, "value": value}}
                    body = {"structuredQuery": {"from": [{"collectionId": "c"}], "where": where}}
                    return hearth.send("POST", "/v1/projects/p/databases/(default)/documents:runQuery", body)[0]

                one: dict[str, object] = {"integerValue": "1"}
                some: dict[str, object] = {"arrayValue": {"values": [one]}}
                return [
                    *(query(op, one) for op in ("EQUAL", "ARRAY_CONTAINS", "LESS_THAN")),
                    *(query(op, some) for op in ("IN", "ARRAY_CONTAINS_ANY", "NOT_IN")),
                    query("EQUAL", one, "b"),
                ]

        assert answers("--require-indexes") == [400] * 6 + [200]
        assert answers() == [200] * 7

    def test_flaws_that_firebases_tools_take_are_warned_of(self, tmp_path: Path) -> None:
        firebase = '{"firestore": {"indexes": "none.json"}, "emulators": {"firestore": {"port": "0"}}} // text'
        (tmp_path / "firebase.json").write_bytes(b"\xef\xbb\xbf" + firebase.replace('"0"', "0").encode())
        (tmp_path / ".firebaserc").write_text('{"projects": }')
        with program(tmp_path, "--memory") as hearth:
            assert put(hearth, 1) == 200
            hearth.process.send_signal(signal.SIGTERM)
            code, log = hearth.end()
        assert code == 0
        for sentence in [
            "firebase.json:1:1: The file begins with a byte order mark, which is ignored.",
            "firebase.json:1:27: firestore.indexes: The index file none.json is not there.",
            ".firebaserc:1:14: This is not valid JSON: unexpected text here. The file is ignored",
        ]:
            assert sentence in log

    def test_a_target_without_databases_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "firebase.json").write_text('{"database": [{"target": "main", "rules": "r.json"}]}')
        code, text = refused(tmp_path, "--port", "0")
        assert code == 78
        assert text.startswith("hearth: firebase.json:1:26: database[0].target: The target main is not in .firebaserc")


class TestRefusals:
    def test_a_port_in_use(self, tmp_path: Path) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            code, text = refused(tmp_path, "--memory", "--port", str(port))
        sentence = f"Cannot listen on 127.0.0.1:{port}: another program uses the port."
        assert (code, text) == (69, f"hearth: {sentence} Name another with --port; 0 takes a free one.\n")

    def test_an_address_of_another_machine(self, tmp_path: Path) -> None:
        assert refused(tmp_path, "--memory", "--host", "192.0.2.1")[0] == 69

    def test_a_folder_that_cannot_be_used(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        code, text = refused(tmp_path, "--port", "0", "--data", "file/data")
        assert (code, text) == (73, "hearth: Cannot make the folder file/data: Not a directory.\n")

    def test_a_newer_format(self, tmp_path: Path) -> None:
        with program(tmp_path) as hearth:
            put(hearth, 1)
            hearth.process.send_signal(signal.SIGTERM)
            hearth.end()
        (file,) = (tmp_path / "hearth-data").glob("*/*.sqlite")
        with file.open("r+b") as header:
            header.seek(60)
            header.write((99).to_bytes(4, "big"))
        code, text = refused(tmp_path, "--port", "0")
        assert code == 73
        assert "has format version 99, which is newer than" in text

    @pytest.mark.parametrize(
        ("options", "code", "text"),
        [
            (["--prot", "1"], 64, "hearth: Unknown option --prot; did you mean --port?\n"),
            (["--port", "x"], 64, 'hearth: --port: expected a whole number from 0 to 65535, found "x".\n'),
            (["--tls-cert", "c.pem"], 64, "hearth: --tls-cert and --tls-key belong together; only one of them is given.\n"),
            (["--indexes", "none.json"], 78, "hearth: The index file none.json is not there.\n"),
        ],
    )
    def test_options(self, tmp_path: Path, options: list[str], code: int, text: str) -> None:
        assert refused(tmp_path, *options) == (code, text)

    def test_certificates(self, tmp_path: Path) -> None:
        code, text = refused(tmp_path, "--memory", "--port", "0", "--tls-cert", "c.pem", "--tls-key", "k.pem")
        assert code == 78
        assert "c.pem" in text

    @pytest.mark.parametrize(
        ("file", "content", "text"),
        [
            ("hearth.json", '{\n  "port" 1}', "hearth: hearth.json:2:10: This is not valid JSON: unexpected text here.\n"),
            ("hearth.json", '{"prot": 1}', 'hearth: hearth.json:1:10: prot: Unknown setting; did you mean "port"?\n'),
            ("firebase.json", '{"firestore": 1}', "hearth: firebase.json:1:15: firestore: Expected an object, found a number.\n"),
            (
                "firestore.indexes.json",
                '{"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": "a", "order": "UP"}]}]}',
                "hearth: firestore.indexes.json:1:78: indexes[0].fields[0].order: Expected ASCENDING or DESCENDING.\n",
            ),
        ],
    )
    def test_files(self, tmp_path: Path, file: str, content: str, text: str) -> None:
        (tmp_path / file).write_text(content)
        assert refused(tmp_path, "--memory", "--port", "0") == (78, text)


class TestFigures:
    def test_metrics(self, tmp_path: Path) -> None:
        with program(tmp_path) as hearth:
            put(hearth, 1)
            hearth.send("GET", DOCUMENT + "/none")
            hearth.send("GET", DOCUMENT[:-1] + "none")
            text = hearth.send("GET", "/metrics")[1].decode()
            assert 'hearth_requests_total{method="UpdateDocument",transport="rest",code="OK"} 1\n' in text
            assert 'hearth_requests_total{method="GetDocument",transport="rest",code="NOT_FOUND"} 1\n' in text
            assert 'hearth_commits_total{project="p",database="(default)"} 1\n' in text
            assert 'hearth_commit_group_size_count{project="p",database="(default)"} 1\n' in text

    def test_request_log(self, tmp_path: Path) -> None:
        with program(tmp_path, "--memory", environment={"HEARTH_LOG_REQUESTS": "1"}) as hearth:
            put(hearth, 1)
            hearth.send("GET", DOCUMENT[:-1] + "none")
            hearth.process.send_signal(signal.SIGTERM)
            log = hearth.end()[1]
        requests = [line for line in log.splitlines() if " request " in line]
        assert "method=UpdateDocument transport=rest code=OK" in requests[0]
        assert "code=NOT_FOUND" in requests[1]
        assert "reason=" in requests[1]
