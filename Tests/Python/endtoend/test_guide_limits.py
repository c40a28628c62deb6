"""The messages that `docs/reference/limits.md` has for an app that meets a limit."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore import FieldFilter, Or

from endtoend.trees import Tree, failure

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "limits.md").read_text().split("\n## ")[1]
MESSAGES = re.findall(r"`([^`]+)`", "".join(re.findall(r"^\|[^|]*\|[^|]*\|([^|]*)\|$", PAGE, re.MULTILINE)))

Call = Callable[[firestore.Client], Any]


def commit(db: firestore.Client, *writes: tuple[str, dict[str, Any]]) -> None:
    batch = db.batch()
    for name, data in writes:
        batch.set(db.document(name), data, merge=True)
    batch.commit()


def nested(levels: int) -> dict[str, Any]:
    return reduce(lambda inner, _: {"m": inner}, range(levels), {})


def ended(db: firestore.Client) -> None:
    transaction = db.transaction()
    transaction._begin()
    number = transaction.id
    transaction._rollback()
    request = {
        "database": db._database_string,
        "documents": [f"{db._database_string}/documents/c/a"],
        "transaction": number,
    }
    list(db._firestore_api.batch_get_documents(request=request, metadata=db._rpc_metadata))


def query(db: firestore.Client, *filters: Any) -> Any:
    return reduce(lambda made, one: made.where(filter=one), filters, db.collection("c")).get()


CALLS: dict[str, Call] = {
    "document": lambda db: db.document("c/a").set({f"f{n}": "x" * 300_000 for n in range(4)}),
    "value": lambda db: db.document("c/a").set({"t": "x" * 1_048_488}),
    "levels": lambda db: db.document("c/a").set(nested(21)),
    "entries": lambda db: db.document("c/a").set({f"f{n}": n for n in range(20_001)}),
    "request": lambda db: commit(db, *[(f"c/{n}", {"t": "x" * 1_000_000}) for n in range(12)]),
    "records": lambda db: commit(db, *[(f"c/{n}", {"n": n}) for n in range(20_001)]),
    "transforms": lambda db: commit(db, *[("c/a", {"n": firestore.Increment(1)})] * 501),
    "id": lambda db: db.document("c/" + "x" * 1_501).set({}),
    "in": lambda db: query(db, FieldFilter("n", "in", list(range(31)))),
    "not in": lambda db: query(db, FieldFilter("n", "not-in", list(range(11)))),
    "or": lambda db: query(db, Or([FieldFilter("n", "==", n) for n in range(31)])),
    "inequalities": lambda db: query(db, *[FieldFilter(f"f{n}", ">", 0) for n in range(11)]),
    "aggregations": lambda db: reduce(
        lambda made, n: made.sum(f"f{n}", alias=f"a{n}"), range(5), db.collection("c").count(alias="c")
    ).get(),
    "transaction": ended,
}


@pytest.mark.emulator_differs("its messages are its own")
@pytest.mark.parametrize("name", CALLS)
def test_messages(db: firestore.Client, name: str) -> None:
    with pytest.raises((exceptions.InvalidArgument, exceptions.Aborted)) as refused:
        CALLS[name](db)
    found = [message for message in MESSAGES if message in refused.value.message]
    assert found, refused.value.message
    # Nothing of it is written.
    assert db.collection("c").count().get()[0][0].value == 0


@pytest.mark.parametrize("body", ['{"a":' * 33 + "1" + "}" * 33, f'"{"x" * 10_485_761}"'])
def test_messages_of_the_realtime_database(tree: Tree, body: str) -> None:
    status, message = failure(tree.send("PUT", "x", body))
    assert status == 400
    assert [part for part in MESSAGES if part in message]
