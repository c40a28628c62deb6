"""The guide's page about batches: its blocks as they are, and the limits that it names."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import firestore

from support.patience import PATIENCE
from support.program import BINARY, Program, program

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

PAGE = (Path(__file__).parents[3] / "docs" / "guide" / "batches.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """The functions of the page's blocks of Python."""
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(compile(block, "batches.md", "exec"), names)
    return names


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Program]:
    with program(tmp_path, "--memory", "--project", "my-project") as started:
        yield started


@pytest.fixture
def db(server: Program, monkeypatch: pytest.MonkeyPatch) -> Iterator[firestore.Client]:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", server.address)
    client = firestore.Client(project="my-project")
    yield client
    client.close()


def count(db: firestore.Client, path: str) -> int:
    return int(db.collection(path).count().get()[0][0].value)


def commit(db: firestore.Client, documents: int, fields: int) -> None:
    batch = db.batch()
    for n in range(documents):
        batch.set(db.document(f"c{fields}/{n}"), {f"f{m}": n for m in range(fields)})
    batch.commit()


@pytest.mark.parametrize(("fields", "fit"), [(1, 20_000), (10, 6_153)])
def test_as_many_documents_as_the_page_says(db: firestore.Client, fields: int, fit: int) -> None:
    with pytest.raises(exceptions.InvalidArgument, match=r"^400 Transaction too big\. Decrease transaction size\.$"):
        commit(db, fit + 1, fields)
    assert count(db, f"c{fields}") == 0
    commit(db, fit, fields)
    assert count(db, f"c{fields}") == fit


def test_a_request_that_is_too_large(db: firestore.Client) -> None:
    batch = db.batch()
    for n in range(12):
        batch.set(db.document(f"c/{n}"), {"text": "x" * 1_000_000})
    with pytest.raises(exceptions.InvalidArgument) as refused:
        batch.commit()
    assert refused.value.message in PAGE
    assert count(db, "c") == 0


def test_in_parts(page: dict[str, Any], db: firestore.Client) -> None:
    documents = {f"lines/{n:04}": {"n": n} for n in range(1001)}
    page["write_in_parts"](db, documents)
    page["write_in_parts"](db, documents)
    assert count(db, "lines") == 1001


def test_a_part_that_failed_is_where_it_continues(
    page: dict[str, Any], db: firestore.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = {f"lines/{n:04}": {"n": n} for n in range(1001)}
    made = firestore.WriteBatch.commit
    calls = []

    def third_fails(batch: firestore.WriteBatch, *words: Any, **more: Any) -> Any:
        calls.append(len(batch))
        if len(calls) == 3:
            raise exceptions.ServiceUnavailable("cut")
        return made(batch, *words, **more)

    monkeypatch.setattr(firestore.WriteBatch, "commit", third_fails)
    with pytest.raises(exceptions.ServiceUnavailable):
        page["write_and_remember"](db, documents, "job")
    assert count(db, "lines") == 800
    page["write_and_remember"](db, documents, "job")
    assert calls == [401, 401, 202, 202]
    assert count(db, "lines") == 1001


def test_the_bulk_writer(page: dict[str, Any], db: firestore.Client) -> None:
    documents = {f"lines/{n}": {"n": n} for n in range(2000)}
    db.document("lines/7").set({"n": "mine"})
    (failed,) = page["create_all"](db, documents)
    assert failed.startswith("lines/7: Document already exists: ")
    assert count(db, "lines") == 2000
    assert db.document("lines/7").get().get("n") == "mine"


def test_a_write_that_no_server_takes_fails_its_request(page: dict[str, Any], db: firestore.Client) -> None:
    documents: dict[str, dict[str, Any]] = {f"lines/{n}": {"n": n} for n in range(200)}
    documents["lines/7"] = {"__no__": "reserved"}
    assert page["create_all"](db, documents) == []
    assert count(db, "lines") == 180


def test_deleting(page: dict[str, Any], db: firestore.Client, server: Program) -> None:
    page["write_in_parts"](db, {f"lines/{n}": {} for n in range(30)} | {f"lines/1/words/{n}": {} for n in range(3)})
    assert page["delete_collection"](db, "lines") == 33
    assert count(db, "lines") == 0

    page["write_in_parts"](db, {f"lines/{n}": {} for n in range(30)} | {"others/1/lines/1": {}, "others/1": {}})
    (script,) = blocks("sh")
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script.replace("localhost:8080", server.address)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ended.returncode == 0, ended.stderr
    operation = json.loads(ended.stdout)["name"]
    end = time.monotonic() + PATIENCE
    while not json.loads(server.send("GET", f"/v1/{operation}")[1]).get("done"):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert count(db, "lines") == 0
    assert [found.reference.path for found in db.collection_group("lines").stream()] == []
    assert db.document("others/1").get().exists


def test_a_switch_at_one_moment(page: dict[str, Any], db: firestore.Client) -> None:
    page["publish"](db, "one", {f"p{n}": 1 for n in range(1000)})
    assert page["price"](db, "p999") == 1
    page["publish"](db, "two", {f"p{n}": 2 for n in range(1000)})
    assert page["price"](db, "p0") == page["price"](db, "p999") == 2
