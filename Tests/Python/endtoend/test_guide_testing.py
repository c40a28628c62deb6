"""The guide's page about testing: its scripts as they are, and the requests of `@firebase/rules-unit-testing`."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.patience import PATIENCE
from support.program import BINARY, Program, environment_of_a_child, program
from support.tokens import unsigned

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

PAGE = (Path(__file__).parents[3] / "docs" / "guide" / "testing.md").read_text()


def block(language: str, part: str) -> str:
    """The block of a language that has a part."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if part in block]
    return str(found)


@pytest.fixture
def path(tmp_path: Path) -> dict[str, str]:
    """An environment in which `hearth` and `pytest` are commands."""
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "hearth").symlink_to(Path(BINARY).absolute())
    (commands / "pytest").write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest -p no:cacheprovider "$@"\n')
    (commands / "pytest").chmod(0o755)
    return environment_of_a_child({"PATH": f"{commands}:{os.environ['PATH']}"})


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    """The folder of an app's tests, with the files of the page."""
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "conftest.py").write_text(block("python", "def server()"))
    (folder / "test_cities.py").write_text(block("python", "parametrize"))
    (folder / "test_notes.py").write_text(block("python", "RULES"))
    return folder


@pytest.mark.parametrize("options", [[], ["-n", "2"]])
def test_a_project_for_each_test(tests: Path, path: dict[str, str], options: list[str]) -> None:
    ended = subprocess.run(["pytest", "-q", *options], cwd=tests, env=path, capture_output=True, text=True, timeout=PATIENCE)
    assert "4 passed" in ended.stdout, ended.stdout + ended.stderr


def test_a_server_for_the_run(tests: Path, path: dict[str, str], server: Program) -> None:
    # The port of a server that has ended is free.
    port = server.port
    server.terminate()
    script = block("sh", "trap").replace("8080", str(port))
    (tests / "conftest.py").write_text("")
    (tests / "test_notes.py").unlink()
    (tests / "test_cities.py").write_text(
        "import os\nfrom google.cloud import firestore\n\ndef test_it():\n"
        f"    assert os.environ['FIREBASE_DATABASE_EMULATOR_HOST'] == '127.0.0.1:{port}'\n"
        "    firestore.Client(project='demo-test').document('a/b').create({})\n"
    )
    (tests / "run-tests.sh").write_text(script)
    (tests / "run-tests.sh").chmod(0o755)

    def run(*options: str) -> tuple[int, str]:
        command = ["./run-tests.sh", "-q", *options]
        ended = subprocess.run(command, cwd=tests, env=path, capture_output=True, text=True, timeout=PATIENCE)
        return ended.returncode, ended.stdout + ended.stderr

    for _ in range(2):
        code, output = run()
        assert (code, "1 passed" in output) == (0, True), output
        assert "is serving" in (tests / "hearth.log").read_text()
    (tests / "test_more.py").write_text("def test_that_fails():\n    assert False\n")
    code, output = run()
    assert (code, "1 failed, 1 passed" in output) == (1, True), output

    # Another program has the port: no test runs there.
    other = Program(tests, "--memory", port=port)
    code, output = run()
    other.kill()
    assert (code != 0, "passed" in output) == (True, False), output


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Program]:
    with program(tmp_path, "--memory", "--project", "demo-test") as started:
        yield started


def send(
    server: Program, method: str, path: str, body: str = "", token: str | None = None, host: str | None = None
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    headers = {"authorization": f"Bearer {token}"} if token else {}
    if host:
        headers["host"] = host
    connection.request(method, path, body or None, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


RULES = """rules_version = '2';
service cloud.firestore { match /databases/{database}/documents { match /notes/{note} {
  allow read, write: if request.auth.uid == '%s';
}}}"""


def test_clearing_leaves_the_rules(server: Program) -> None:
    rules = json.dumps({"rules": {"files": [{"content": RULES % "eva"}]}})
    assert send(server, "PUT", "/emulator/v1/projects/demo-test:securityRules", rules)[0] == 200
    note = "/v1/projects/demo-test/databases/(default)/documents/notes/a"
    assert send(server, "PATCH", note, '{"fields": {}}', "owner")[0] == 200
    assert send(server, "PUT", "/.json?ns=demo-test-default-rtdb", "1", "owner")[0] == 200
    script = block("sh", "-X DELETE").replace("127.0.0.1:8080", server.address)
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], check=True, capture_output=True, timeout=PATIENCE)
    assert send(server, "GET", note, token="owner")[0] == 404
    assert send(server, "GET", "/.json?ns=demo-test-default-rtdb", token="owner")[1] == b"null"
    assert send(server, "GET", note)[0] == 403


def test_the_requests_of_rules_unit_testing(server: Program) -> None:
    """Those of `packages/rules-unit-testing/src/impl` in firebase-js-sdk: rules of both products by project, a namespace
    with the project's name, clearing, and tokens of users, of `owner` and none.
    """
    for project, uid in [("demo-1", "eva"), ("demo-2", "adam")]:
        rules = json.dumps({"rules": {"files": [{"content": RULES % uid}]}})
        assert send(server, "PUT", f"/emulator/v1/projects/{project}:securityRules", rules)[0] == 200
        tree = json.dumps({"rules": {".read": True, "notes": {".write": f"auth.uid == '{uid}'"}}})
        assert send(server, "PUT", f"/.settings/rules.json?ns={project}", tree, "owner")[0] == 200
    for project, uid in [("demo-1", "eva"), ("demo-2", "adam")]:
        for database in ["(default)", "second"]:
            note = f"/v1/projects/{project}/databases/{database}/documents/notes/a"
            answers = [
                send(server, "PATCH", note, '{"fields": {}}', token)[0]
                for token in ["owner", unsigned(uid), unsigned("zoe"), None]
            ]
            assert answers == [200, 200, 403, 403]
        answers = [
            send(server, "PUT", f"/notes/a.json?ns={project}", "1", token)[0]
            for token in ["owner", unsigned(uid), unsigned("zoe"), None]
        ]
        assert answers == [200, 200, 401, 401]
    path = "/emulator/v1/projects/demo-1/databases/(default)/documents"
    assert send(server, "DELETE", path)[0] == 200
    found = [
        send(server, "GET", f"/v1/projects/{project}/databases/{database}/documents/notes/a", token="owner")[0]
        for project, database in [("demo-1", "(default)"), ("demo-1", "second"), ("demo-2", "(default)")]
    ]
    assert found == [404, 200, 200]


def test_in_a_container(tmp_path: Path) -> None:
    """The variables of `compose.yaml` and of the image, and the names by which the server is reached there."""
    service = block("yaml", "services:").split("  tests:")[0]
    variables = dict(re.findall(r'(HEARTH_\w+): "?([\w-]+)', service))
    assert set(variables) == {"HEARTH_MEMORY", "HEARTH_EMULATOR", "HEARTH_PROJECT"}
    with program(tmp_path, environment={"HEARTH_HOST": "*", **variables}) as started:
        note = "/v1/projects/demo-test/databases/(default)/documents/notes/a"
        for host, status in [("hearth:8080", 200), ("10.1.2.3:8080", 200), ("hearth.example.com:8080", 403)]:
            assert send(started, "PATCH", note, '{"fields": {}}', "owner", host)[0] == status
    del variables["HEARTH_EMULATOR"]
    with program(tmp_path, environment={"HEARTH_HOST": "*", **variables}) as started:
        assert send(started, "PATCH", note, '{"fields": {}}', "owner", "hearth:8080")[0] == 401
