"""The guide's page on aggregation: its query, and the rules that check what clients keep, as they are on the page."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.cloud import firestore

from endtoend.people import fields
from support.patience import PATIENCE
from support.program import BINARY, Program, environment_of_a_child, program
from support.tokens import unsigned

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

PAGE = (Path(__file__).parents[3] / "docs/guide/aggregation.md").read_text()
DOCUMENTS = "projects/demo-test/databases/(default)/documents"
ROME = f"{DOCUMENTS}/restaurants/rome"


def block(language: str, part: str) -> str:
    found = [found for found in re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S) if part in found]
    assert len(found) == 1, found
    return str(found[0])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Program]:
    (tmp_path / "firestore.rules").write_text(block("", "rules_version"))
    with program(
        tmp_path, "--memory", "--project", "demo-test", "--rules", str(tmp_path / "firestore.rules")
    ) as started:
        yield started


def commit(server: Program, user: str | None, *writes: dict[str, Any]) -> int:
    """The status of a commit: by a user, or by an administrator."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    headers = {"authorization": f"Bearer {'owner' if user is None else unsigned(user)}"}
    connection.request("POST", f"/v1/{DOCUMENTS}:commit", json.dumps({"writes": list(writes)}), headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def rating(user: str, stars: int) -> dict[str, Any]:
    return {"update": {"name": f"{ROME}/ratings/{user}", "fields": fields({"rating": stars})}}


def restaurant(number: int, total: int, average: float) -> dict[str, Any]:
    kept = {"numRatings": number, "sumRatings": total, "avgRating": average}
    return {"update": {"name": ROME, "fields": fields(kept)}, "updateMask": {"fieldPaths": list(kept)}}


def test_rules_check_what_clients_keep(server: Program) -> None:
    made = {"update": {"name": ROME, "fields": fields({"name": "Rome", "numRatings": 0, "sumRatings": 0})}}
    assert commit(server, None, made) == 200
    assert commit(server, "eva", rating("eva", 4), restaurant(1, 4, 4.0)) == 200
    # One without the other, another's rating, a wrong number, sum or average, a wrong rating.
    assert commit(server, "adam", rating("adam", 3)) == 403
    assert commit(server, "adam", restaurant(2, 7, 3.5)) == 403
    assert commit(server, "adam", rating("eva", 3), restaurant(1, 3, 3.0)) == 403
    assert commit(server, "adam", rating("adam", 3), restaurant(3, 7, 7 / 3)) == 403
    assert commit(server, "adam", rating("adam", 3), restaurant(2, 8, 4.0)) == 403
    assert commit(server, "adam", rating("adam", 3), restaurant(2, 7, 4.0)) == 403
    assert commit(server, "adam", rating("adam", 6), restaurant(2, 10, 5.0)) == 403
    # Another one, and one that replaces the former.
    assert commit(server, "adam", rating("adam", 3), restaurant(2, 7, 3.5)) == 200
    assert commit(server, "eva", rating("eva", 5), restaurant(2, 8, 4.0)) == 200
    assert commit(server, "zoe", rating("zoe", 2), restaurant(3, 10, 10 / 3)) == 200
    assert commit(server, "eva", rating("eva", 5), restaurant(4, 15, 3.75)) == 403


def test_the_query(server: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", server.address)
    db = firestore.Client(project="demo-test")
    for stars in (1, 3, 5, 5):
        db.collection("restaurants/rome/ratings").add({"rating": stars})
    variables = {"FIRESTORE_EMULATOR_HOST": server.address, "GOOGLE_CLOUD_PROJECT": "demo-test"}
    ended = subprocess.run(
        [sys.executable, "-c", block("python", "count(")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**environment_of_a_child(), **variables},
    )
    assert ended.stdout == "4 14 3.5\n", ended.stderr
