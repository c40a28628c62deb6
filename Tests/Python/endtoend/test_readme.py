"""The README's first steps, as they are on the page: its Python program, its requests with curl and its commands.

Only the address is exchanged, and the folder of the backup.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.patience import PATIENCE
from support.program import BINARY, Program, environment_of_a_child, program

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

PAGE = (Path(__file__).parents[3] / "README.md").read_text()
ADDRESS = "127.0.0.1:8080"
RULES = """rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents { match /cities/{city} { allow read: if request.auth != null; } }
}
"""
CASES = [
    {
        "name": "those who signed in read",
        "expectation": "ALLOW",
        "request": {"auth": {"uid": "alice"}, "method": "get", "path": "/databases/(default)/documents/cities/LA"},
        "resource": {"data": {}},
    }
]


def block(language: str, part: str) -> str:
    (found,) = [text for text in re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S) if part in text]
    return str(found)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Program]:
    with program(tmp_path) as started:
        yield started


def run(command: list[str], server: Program, folder: Path) -> str:
    address = f"127.0.0.1:{server.port}"
    assert BINARY
    (folder / "bin").mkdir(exist_ok=True)
    shutil.copy(BINARY, folder / "bin/hearth")
    ended = subprocess.run(
        command,
        cwd=folder,
        env=environment_of_a_child()
        | {
            "FIRESTORE_EMULATOR_HOST": address,
            "FIREBASE_DATABASE_EMULATOR_HOST": address,
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_python_program(server: Program, tmp_path: Path) -> None:
    printed = run([sys.executable, "-c", block("python", "firestore.Client")], server, tmp_path)
    assert printed.startswith("LA {") and "'population': 3900000" in printed


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_requests(server: Program, tmp_path: Path) -> None:
    commands = block("sh", "curl -X PATCH").replace(ADDRESS, f"127.0.0.1:{server.port}").replace("curl ", "curl -sSf ")
    printed = run(["bash", "-ec", commands], server, tmp_path)
    assert printed.count('"integerValue":"3900000"') == 2, "the answer of the write, and the document"
    assert json.loads(printed[printed.rindex("{") :]) == {"ann": 7, "bob": 9}


def test_the_commands(server: Program, tmp_path: Path) -> None:
    (tmp_path / "firestore.rules").write_text(RULES)
    (tmp_path / "cases.json").write_text(json.dumps({"testCases": CASES}))
    (tmp_path / "token.secret").write_text("0123456789abcdef" * 4)
    run([sys.executable, "-c", block("python", "firestore.Client")], server, tmp_path)
    commands = block("sh", "hearth rules check").replace(ADDRESS, f"127.0.0.1:{server.port}")
    printed = run(["bash", "-ec", commands.replace("/srv/backups", str(tmp_path))], server, tmp_path)
    assert "1 of 1 cases as expected" in printed
    assert "cities.bundle: 1 document," in printed
    assert (tmp_path / "today/manifest.json").is_file()
