"""The guide's page about transactions: its block of Python as it is, and the mistake that it names."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import firestore

PAGE = (Path(__file__).parents[3] / "docs" / "guide" / "transactions.md").read_text()


@pytest.fixture
def page(project: str, db: firestore.Client, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the block of Python declares, run in the project of the test."""
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", project)
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "transactions.md", "exec"), names)
    return names


def test_no_seat_is_booked_twice(page: dict[str, Any], db: firestore.Client) -> None:
    for n in range(12):
        db.document(f"seats/{n:02}").set({"guest": ""})
    booked: dict[str, list[str]] = {}

    def work(guest: str) -> None:
        booked[guest] = page["book"](page["db"].transaction(max_attempts=30), guest, 3)

    threads = [threading.Thread(target=work, args=(f"guest {n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(len(seats) for seats in booked.values()) == [0, 0, 3, 3, 3, 3]
    for guest, seats in booked.items():
        assert {found.id for found in db.collection("seats").where(filter=firestore.FieldFilter("guest", "==", guest)).stream()} == set(seats)


def test_a_write_beside_the_transaction_waits_for_its_own_lock(db: firestore.Client) -> None:
    document = db.document("seats/1")
    document.set({"guest": ""})

    @firestore.transactional
    def wrong(transaction: firestore.Transaction) -> None:
        document.get(transaction=transaction)
        document.update({"guest": "Eva"})

    with pytest.raises(exceptions.Aborted) as refused:
        wrong(db.transaction())
    assert f"`{refused.value.message}`" in PAGE
    assert document.get().get("guest") == ""
