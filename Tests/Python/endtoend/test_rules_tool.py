"""`hearth rules`: errors in rules, and their decisions."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.patience import PATIENCE
from support.program import BINARY, program

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

RULES = """rules_version = '2';
service cloud.firestore {
  match /databases/{db}/documents {
    function isMember(room) {
      return exists(/databases/$(db)/documents/rooms/$(room)/members/$(request.auth.uid));
    }
    match /rooms/{room} {
      allow get: if isMember(room) || resource.data.public == true;
      allow list: if request.query.limit <= 10;
      allow update: if isMember(room) && request.resource.data.n == resource.data.n + 1;
      match /log/{entry} {
        allow create: if getAfter(/databases/$(db)/documents/rooms/$(room)).data.n == request.resource.data.n;
      }
    }
  }
}
"""


def case(expected: str, method: str, path: str, uid: str | None = "alice", **more: Any) -> dict[str, Any]:
    request: dict[str, Any] = {"method": method, "path": f"/databases/(default)/documents/{path}", **more.pop("request", {})}
    if uid:
        request["auth"] = {"uid": uid, "token": {}}
    return {"name": f"{method} {path}", "expectation": expected, "request": request, **more}


MEMBER = {"rooms/a/members/alice": {}}
CASES = [
    case("ALLOW", "get", "rooms/a", documents=MEMBER, resource={"data": {}}),
    case("DENY", "get", "rooms/a", "bob", documents=MEMBER, resource={"data": {}}),
    case("ALLOW", "get", "rooms/a", None, resource={"data": {"public": True}}),
    case("ALLOW", "list", "rooms/x", request={"query": {"limit": 10}}),
    case("DENY", "list", "rooms/x", request={"query": {"limit": 11}}),
    case("DENY", "list", "rooms/x"),
    case(
        "ALLOW",
        "update",
        "rooms/a",
        resource={"data": {"n": 1}},
        request={"resource": {"data": {"n": 2}}},
        functionMocks=[
            {
                "function": "exists",
                "args": [{"exactValue": "/databases/(default)/documents/rooms/a/members/alice"}],
                "result": {"value": True},
            }
        ],
    ),
    {
        "name": "batch",
        "expectation": "ALLOW",
        "request": {"auth": {"uid": "alice"}},
        "documents": {**MEMBER, "rooms/a": {"n": 1}},
        "writes": [{"path": "rooms/a", "data": {"n": 2}}, {"path": "rooms/a/log/1", "data": {"n": 2}}],
    },
    {
        "name": "half a batch",
        "expectation": "DENY",
        "request": {"auth": {"uid": "alice"}},
        "documents": {**MEMBER, "rooms/a": {"n": 1}},
        "writes": [{"path": "rooms/a/log/1", "data": {"n": 2}}],
    },
]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARY, "rules", *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "firestore.rules").write_text(RULES)
    (tmp_path / "cases.json").write_text(json.dumps(CASES))
    return tmp_path


def test_cases(folder: Path) -> None:
    done = run(folder, "test", "firestore.rules", "cases.json")
    assert (done.returncode, done.stdout) == (0, f"{len(CASES)} of {len(CASES)} cases as expected.\n")


def test_a_case_that_comes_out_otherwise(folder: Path) -> None:
    wrong = [{**CASES[0], "expectation": "DENY"}, CASES[1]]
    (folder / "cases.json").write_text(json.dumps({"testSuite": {"testCases": wrong}}))
    done = run(folder, "test", "firestore.rules", "cases.json")
    assert done.returncode == 1
    assert "get rooms/a: expected DENY" in done.stdout
    assert "1 of 2 cases as expected." in done.stdout


def test_a_timestamp_that_is_none(folder: Path) -> None:
    wrong = case("ALLOW", "get", "rooms/a", resource={"data": {"list": [{"timestampValue": "yesterday"}]}})
    (folder / "cases.json").write_text(json.dumps([CASES[0], wrong]))
    done = run(folder, "test", "firestore.rules", "cases.json")
    assert done.returncode == 78
    assert 'Case 2: "timestampValue" is not an RFC 3339 time.' in done.stderr


def test_coverage(folder: Path) -> None:
    for name in ("coverage.txt", "coverage.html"):
        assert run(folder, "test", "firestore.rules", "cases.json", "--coverage", name).returncode == 0
        assert "expressions evaluated" in (folder / name).read_text()


def test_explanation(folder: Path) -> None:
    done = run(folder, "explain", "firestore.rules", "cases.json")
    assert done.returncode == 0
    assert "get rooms/a: ALLOW" in done.stdout
    assert "isMember(room)" in done.stdout


def test_check(folder: Path) -> None:
    assert run(folder, "check", "firestore.rules").returncode == 0
    (folder / "broken.rules").write_text(RULES.replace("exists(", "exists(("))
    done = run(folder, "check", "broken.rules")
    assert done.returncode == 78
    assert done.stdout.startswith("broken.rules:5:")
    assert run(folder, "check", "nowhere.rules").returncode == 78
    assert run(folder, "chekc", "firestore.rules").returncode == 64


def test_check_of_the_realtime_database_s_rules(folder: Path) -> None:
    (folder / "database.rules.json").write_text('// who\n{"rules": {".read": "auth != null", /* all */ },}\n')
    done = run(folder, "check", "database.rules.json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (folder / "broken.json").write_text('{"rules": {\n  ".read": "auth != null && foo"}}')
    done = run(folder, "check", "broken.json")
    assert done.returncode == 78
    assert done.stdout == "broken.json:2:29: error: Unknown variable 'foo'.\n"
    assert "broken.json: 1 error." in done.stderr
    # Cases are supported for Firestore only.
    (folder / "cases.json").write_text("[]")
    done = run(folder, "test", "database.rules.json", "cases.json")
    assert done.returncode == 78 and "which are only checked" in done.stderr


def test_the_server_tells_what_requests_have_reached(folder: Path, tmp_path: Path) -> None:
    with program(tmp_path, "--memory") as server:
        assert server.send("GET", "/emulator/v1/projects/p:ruleCoverage")[0] == 404
        body = {"rules": {"files": [{"content": RULES}]}}
        assert server.send("PUT", "/emulator/v1/projects/p:securityRules", body)[0] == 200
        assert server.send("GET", "/v1/projects/p/databases/(default)/documents/rooms/a")[0] == 403
        status, text = server.send("GET", "/emulator/v1/projects/p:ruleCoverage")
        assert status == 200
        assert any("values" in child for child in json.loads(text)["report"][0].get("children", [{"values": 1}]))
        assert server.send("GET", "/emulator/v1/projects/p:ruleCoverage.html")[0] == 200
        broken = {"rules": {"files": [{"content": "service {"}]}}
        assert server.send("PUT", "/emulator/v1/projects/p:securityRules", broken)[0] == 400
        status, text = server.send("PUT", "/emulator/v1/projects/p:securityRules", {**broken, "ignore_errors": True})
        assert status == 200
        assert json.loads(text)["issues"][0]["severity"] == "ERROR"
        # The earlier rules stay in force.
        assert server.send("GET", "/v1/projects/p/databases/(default)/documents/rooms/a")[0] == 403
