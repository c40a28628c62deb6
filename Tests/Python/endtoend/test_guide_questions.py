"""The guide's list of questions: each page that it names has the section, and answers that no other test shows are tried."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore import And, FieldFilter, Or

from support.patience import PATIENCE
from support.program import BINARY, Program, program
from support.tool import Tool

GUIDE = Path(__file__).parents[3] / "docs" / "guide"
QUESTIONS = re.findall(r"^\*\*(.+?)\*\*\n(.+?)(?=\n\n|\Z)", (GUIDE / "questions.md").read_text(), re.MULTILINE | re.DOTALL)

needs_program = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")


def anchors(page: Path) -> set[str]:
    """The sections of a page, as GitHub names them in links."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_there_are_enough() -> None:
    assert len(QUESTIONS) >= 20
    assert len({question for question, _ in QUESTIONS}) == len(QUESTIONS)


@pytest.mark.parametrize(("question", "answer"), QUESTIONS)
def test_a_question_has_a_page_and_a_thread(question: str, answer: str) -> None:
    assert question.endswith("?")
    assert len(re.findall(r"\]\(https://github\.com/[\w-]+/[\w-]+/(?:issues|pull)/\d+\)", answer)) == 1
    links = re.findall(r"\]\(([\w./-]+\.md)#([\w-]+)\)", answer)
    assert len(links) == 1
    ((page, anchor),) = links
    assert anchor in anchors(GUIDE / page), f"{page} has no section {anchor}"


# Answers


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Program]:
    with program(tmp_path, "--memory", "--project", "my-project") as started:
        yield started


def test_an_average_with_or(db: firestore.Client) -> None:
    for n, (a, b, rating) in enumerate([(1, 0, 4.0), (0, 1, 2.0), (1, 1, 3.0), (0, 0, 100.0)]):
        db.document(f"events/{n}").set({"a": a, "b": b, "rating": rating, "n": n})
    either = Or([FieldFilter("a", "==", 1), FieldFilter("b", "==", 1)])
    query = db.collection("events").where(filter=And([FieldFilter("n", ">=", 0), either]))
    answer = query.count(alias="count").sum("rating", alias="sum").avg("rating", alias="average").get()[0]
    assert {result.alias: result.value for result in answer} == {"count": 3, "sum": 9.0, "average": 3.0}


def test_one_document_is_written_again_and_again(db: firestore.Client) -> None:
    counter = db.document("counters/one")
    counter.set({"n": 0})
    for _ in range(500):
        counter.update({"n": firestore.Increment(1)})
    assert counter.get().get("n") == 500


@needs_program
def test_named_databases_are_exported_one_by_one(
    server: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", server.address)
    first = firestore.Client(project="my-project")
    second = firestore.Client(project="my-project", database="second")
    first.document("cities/LA").set({"name": "Los Angeles"})
    second.document("cities/SF").set({"name": "San Francisco"})
    tool = Tool(options=["--address", server.address], folder=tmp_path)
    tool("export", "suite", "--format", "suite", "--project", "my-project")
    script = (GUIDE / "export.md").read_text().split("## Named databases")[1].split("```")[1]
    export, again = (line.split()[1:] for line in script.splitlines() if line.startswith("hearth "))
    tool(*export)
    for client, name in [(first, "cities/LA"), (second, "cities/SF")]:
        client.document(name).delete()
    tool(*again)
    assert second.document("cities/SF").get().exists
    assert not first.document("cities/LA").get().exists
    tool("import", "suite", "--project", "my-project")
    assert first.document("cities/LA").get().exists
    assert not first.document("cities/SF").get().exists


@needs_program
def test_a_missing_index_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with program(tmp_path, "--memory", "--require-indexes") as started:
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", started.address)
        db = firestore.Client(project="demo-test")
        query = db.collection("cities").where(filter=FieldFilter("state", "==", "CA")).order_by("population")
        with pytest.raises(exceptions.FailedPrecondition) as refused:
            query.get()
        assert "index" in refused.value.message
        assert "population" in refused.value.message


@needs_program
def test_a_local_server_with_tls(tmp_path: Path) -> None:
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "30", "-keyout", "server.key", "-out", "server.pem", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=PATIENCE,
    )
    page = (GUIDE / "testing.md").read_text().split("## Over HTTPS")[1]
    (options,) = re.findall(r"^hearth serve (.+)$", page, re.MULTILINE)
    allowed = "https://192.168.1.7:5173"
    assert allowed in options
    with program(tmp_path, *options.replace("'", "").split()) as started:
        context = ssl.create_default_context(cafile=tmp_path / "server.pem")
        path = "/v1/projects/demo-test/databases/(default)/documents/cities/LA"
        for origin, status in [(allowed, 200), ("https://localhost:5173", 200), ("https://evil.example", 403)]:
            connection = http.client.HTTPSConnection("127.0.0.1", started.port, timeout=PATIENCE, context=context)
            connection.request("PATCH", path, json.dumps({"fields": {}}), {"origin": origin})
            answer = connection.getresponse()
            assert answer.status == status, answer.read()
            assert answer.headers["access-control-allow-origin"] == (origin if status == 200 else None)
            connection.close()
