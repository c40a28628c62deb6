"""The guide's page on Security Rules: its file compiles without a warning, and decides its cases as the page says."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.patience import PATIENCE
from support.program import BINARY

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

PAGE = (Path(__file__).parents[3] / "docs/guide/security-rules.md").read_text()


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n((?:rules_version|{{).*?)^```$", PAGE, re.M | re.S)
    return str(found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "firestore.rules").write_text(block(""))
    (tmp_path / "cases.json").write_text(block("json"))
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARY, "rules", *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)


def test_the_file_compiles(folder: Path) -> None:
    ended = run(folder, "check", "firestore.rules")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_its_commands(folder: Path) -> None:
    commands = re.findall(r"^hearth (rules (?:test|explain) .*)$", PAGE, re.M)
    assert len(commands) == 3
    for command in commands:
        assert run(folder, *command.split()[1:]).returncode == 0, command
    assert (folder / "coverage.html").exists()
    assert run(folder, "test", "firestore.rules", "cases.json").stdout == "7 of 7 cases as expected.\n"


MEMBERS = {
    "rooms/a": {"owner": "eva"},
    "rooms/a/members/eva": {"role": "moderator"},
    "rooms/a/members/adam": {"role": "guest"},
}


def case(expected: str, method: str, path: str, uid: str, /, **more: Any) -> dict[str, Any]:
    request = {
        "auth": {"uid": uid, "token": more.pop("token", {})},
        "method": method,
        "path": f"/databases/(default)/documents/{path}",
        **more.pop("request", {}),
    }
    return {"name": f"{uid} {method} {path}", "expectation": expected, "request": request, "documents": MEMBERS, **more}


def data(**fields: Any) -> dict[str, Any]:
    return {"resource": {"data": fields}}


def batch(expected: str, uid: str, *writes: tuple[str, dict[str, Any] | None]) -> dict[str, Any]:
    return {
        "name": f"{uid} {writes}",
        "expectation": expected,
        "request": {"auth": {"uid": uid, "token": {}}},
        "documents": MEMBERS,
        "writes": [{"path": path, "data": content} for path, content in writes],
    }


CASES = [
    case("ALLOW", "get", "rooms/a", "adam", **data(owner="eva")),
    case("DENY", "get", "rooms/a", "zoe", **data(owner="eva")),
    case("ALLOW", "get", "rooms/a", "zoe", token={"staff": True}, **data(owner="eva")),
    case("DENY", "get", "rooms/a/messages/b", "zoe", token={"staff": True}, **data(by="eva")),
    case("ALLOW", "list", "rooms/a", "eva", request={"query": {"limit": 20}}, **data(isPublic=True)),
    case("DENY", "list", "rooms/a", "eva", request={"query": {"limit": 21}}, **data(isPublic=True)),
    case("DENY", "list", "rooms/a", "eva", request={"query": {"limit": 20}}, **data(isPublic=False)),
    case("DENY", "list", "rooms/a", "eva", request={"query": {"limit": 20}}),
    case("ALLOW", "delete", "rooms/a/messages/b", "eva", **data(by="adam")),
    case("DENY", "delete", "rooms/a/messages/b", "adam", **data(by="eva")),
    batch("ALLOW", "eva", ("rooms/a/members/zoe", {"role": "guest"})),
    batch("DENY", "adam", ("rooms/a/members/zoe", {"role": "guest"})),
    batch("DENY", "zoe", ("rooms/a/members/zoe", {"role": "moderator"})),
    batch("DENY", "adam", ("rooms/a", {"owner": "adam"})),
    batch("ALLOW", "adam", ("rooms/a", {"owner": "eva", "name": "Home"})),
    batch("ALLOW", "eva", ("users/eva", {"name": "Eva"})),
    batch("DENY", "eva", ("users/eva", {"name": "Eva", "more": 1})),
    batch("DENY", "eva", ("users/eva", {"name": ""})),
    batch("ALLOW", "eva", ("users/eva", {"name": "Eva", "born": {"timestampValue": "2001-02-03T00:00:00Z"}})),
    batch("DENY", "eva", ("users/eva", {"name": "Eva", "born": "2001-02-03T00:00:00Z"})),
    batch("DENY", "adam", ("users/eva", {"name": "Eva"})),
]


def test_what_else_it_says(folder: Path) -> None:
    (folder / "more.json").write_text(json.dumps({"testCases": CASES}))
    ended = run(folder, "test", "firestore.rules", "more.json")
    assert ended.stdout == f"{len(CASES)} of {len(CASES)} cases as expected.\n"
