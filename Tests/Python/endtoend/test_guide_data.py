"""The guide's scripts and requests for data that moves and for tests, as they are on the pages.

Only the address of the server is exchanged.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.patience import PATIENCE
from support.program import BINARY, Program, environment_of_a_child, program
from support.tool import Tool

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

DOCS = Path(__file__).parents[3] / "docs"


def block(page: str, language: str, part: str) -> str:
    """The block of a language that has a part."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if part in block]
    return str(found)


def python(script: str, content: str) -> str:
    """What a script of a page prints for its standard input."""
    ended = subprocess.run([sys.executable, "-c", script], input=content.encode(), capture_output=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout.decode()


def imported(server: Program, project: str, lines: str) -> list[dict[str, Any]]:
    """The documents of a project behind an import."""
    tool = Tool(options=["--address", server.address, "--project", project])
    tool("import", "-", data=lines)
    return [json.loads(line) for line in tool("export", "-", "--format", "ndjson").splitlines()]


def shell(script: str, server: Program, folder: Path) -> str:
    script = re.sub(r"(localhost|127\.0\.0\.1):8080", server.address, script)
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, capture_output=True, text=True, timeout=PATIENCE
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Program]:
    with program(tmp_path, "--memory", "--project", "demo-test", "--export-folder", "exports") as started:
        yield started


def test_the_script_for_tables_takes_no_string_for_a_number(server: Program) -> None:
    table = '\ufeffid,name,n,code,more\nLA,"Los, Angeles",3900000,01234,-2.5\nX,nan,1_000,Infinity, 12 \n'
    lines = python(block("guide/export.md", "python", "csv.DictReader"), table)
    first, second = imported(server, "demo-test", lines)
    assert first["fields"] == {
        "name": {"stringValue": "Los, Angeles"},
        "n": {"integerValue": "3900000"},
        "code": {"stringValue": "01234"},
        "more": {"doubleValue": -2.5},
    }
    assert [next(iter(value)) for value in second["fields"].values()] == ["stringValue"] * 4


def test_the_script_for_nested_json_makes_every_value(server: Program) -> None:
    values = {
        "bool": True,
        "double": 1.5,
        "int": 7,
        "large": 10**20,
        "list": [None, {"a": []}],
        "point": {"__datatype__": "geopoint", "value": {"_latitude": 1, "_longitude": 2}},
        "reference": {"__datatype__": "documentReference", "value": "cities/X"},
        "time": {"__datatype__": "timestamp", "value": {"_seconds": -5, "_nanoseconds": 5000}},
        "__collections__": {"sub": {"a": {"__collections__": {}}}},
    }
    content = json.dumps({"__collections__": {"cities": {"LA": values}}})
    lines = python(block("reference/exports.md", "python", "__collections__"), content)
    first, second = imported(server, "demo-hearth", lines)
    assert second == {"name": "cities/LA/sub/a", "fields": {}}
    assert first["fields"] == {
        "bool": {"booleanValue": True},
        "double": {"doubleValue": 1.5},
        "int": {"integerValue": "7"},
        "large": {"doubleValue": 1e20},
        "list": {
            "arrayValue": {
                "values": [{"nullValue": None}, {"mapValue": {"fields": {"a": {"arrayValue": {"values": []}}}}}]
            }
        },
        "point": {"geoPointValue": {"latitude": 1, "longitude": 2}},
        "reference": {"referenceValue": "projects/demo-hearth/databases/(default)/documents/cities/X"},
        "time": {"timestampValue": "1969-12-31T23:59:55.000005Z"},
    }


def test_a_seed_for_tests(server: Program, tmp_path: Path) -> None:
    line = {"name": "cities/LA", "fields": {"name": {"stringValue": "Los Angeles"}}}
    tool = Tool(options=["--address", server.address, "--project", "demo-test"], folder=tmp_path)
    tool("import", "-", data=json.dumps(line))
    assert server.send("PUT", "/.json?ns=demo-test-default-rtdb", {"a": 1})[0] == 200
    tool("export", "seed", "--format", "suite")
    assert server.send("PUT", "/.json?ns=demo-test-default-rtdb", {"b": 2})[0] == 200
    shell(block("guide/seeding.md", "sh", "disableTriggers"), server, tmp_path)
    assert json.loads(server.send("GET", "/.json?ns=demo-test-default-rtdb")[1]) == {"a": 1}
    (tmp_path / "test_seed.py").write_text(block("guide/seeding.md", "python", "def test_"))
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "test_seed.py"],
        cwd=tmp_path,
        env={**environment_of_a_child(), "FIRESTORE_EMULATOR_HOST": server.address},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert "2 passed" in ended.stdout, ended.stdout + ended.stderr


def test_requests_to_the_admin_api(server: Program, tmp_path: Path) -> None:
    script = block("guide/export.md", "sh", ":exportDocuments").replace("my-project", "demo-test")
    # The import begins when the export has ended: between them a person would look at the operations.
    begin, rest = script.split("curl -H", 1)
    shell(begin, server, tmp_path)
    shell(f"SECRET=owner; until test -d exports/monday; do sleep 0.02; done; curl -H{rest}", server, tmp_path)
    operations = "/v1/projects/demo-test/databases/(default)/operations"
    answer = json.loads(server.send("GET", operations)[1])
    kinds = [operation["metadata"]["@type"].rsplit(".", 1)[1] for operation in answer["operations"]]
    assert kinds == ["ExportDocumentsMetadata", "ImportDocumentsMetadata"]


@pytest.mark.parametrize("page", ["moving", "deploying-rules", "backups"])
def test_configurations_are_read(page: str, tmp_path: Path) -> None:
    (tmp_path / "hearth.json").write_text(block(f"guide/{page}.md", "json", ""))
    assert "0 triggers" in Tool(folder=tmp_path)("triggers", "check", "hearth.json")
