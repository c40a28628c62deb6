"""Transactions through Google's client, alone and against each other."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

THREADS = 32


def test_read_then_write(db: firestore.Client) -> None:
    reference = db.document("c/a")
    reference.set({"n": 1})

    @firestore.transactional
    def double(transaction: firestore.Transaction) -> int:
        value = reference.get(transaction=transaction).get("n")
        transaction.update(reference, {"n": value * 2})
        return value

    assert double(db.transaction()) == 1
    assert reference.get().get("n") == 2


def test_an_exception_rolls_back(db: firestore.Client) -> None:
    reference = db.document("c/a")
    reference.set({"n": 1})

    @firestore.transactional
    def fail(transaction: firestore.Transaction) -> None:
        reference.get(transaction=transaction)
        transaction.set(reference, {"n": 2})
        raise RuntimeError("changed my mind")

    with pytest.raises(RuntimeError):
        fail(db.transaction())
    assert reference.get().get("n") == 1
    # No lock is left behind: otherwise this would wait and fail.
    reference.set({"n": 3})


def test_reads_do_not_see_the_transactions_own_writes(db: firestore.Client) -> None:
    reference = db.document("c/a")
    reference.set({"n": 1})
    transaction = db.transaction()
    transaction._begin()
    assert reference.get(transaction=transaction).get("n") == 1
    assert [s.get("n") for s in transaction.get(db.collection("c").limit(10))] == [1]
    transaction._rollback()


@pytest.mark.emulator_differs("its locks time out after two seconds, and the client gives up after five attempts")
def test_many_threads_increment_one_document(db: firestore.Client, project: str) -> None:
    """Python's client tries five times without a pause, so a server that only bounces conflicts starves it."""
    reference = db.document("c/counter")
    reference.set({"n": 0})

    def increment(_: int) -> None:
        client = firestore.Client(project=project, credentials=AnonymousCredentials())
        counter = client.document("c/counter")

        @firestore.transactional
        def run(transaction: firestore.Transaction) -> None:
            value = counter.get(transaction=transaction).get("n")
            transaction.update(counter, {"n": value + 1})

        run(client.transaction())

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(increment, range(THREADS)))
    assert reference.get().get("n") == THREADS


def test_queries_in_transactions_see_no_phantoms(db: firestore.Client) -> None:
    """Two transactions each count the seats and take one if it is free: only one may succeed."""
    db.document("seats/first").set({"taken": True})
    # The second attempt of the one that lost waits alone.
    together = threading.Barrier(2, timeout=5)

    def take(name: str) -> str:
        @firestore.transactional
        def run(transaction: firestore.Transaction) -> bool:
            taken = len(list(transaction.get(db.collection("seats").limit(10))))
            with contextlib.suppress(threading.BrokenBarrierError):
                together.wait()
            if taken >= 2:
                return False
            transaction.create(db.document(f"seats/{name}"), {"taken": True})
            return True

        return "got" if run(db.transaction(max_attempts=10)) else "full"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(take, ["x", "y"])) == ["full", "got"]
    assert db.collection("seats").count().get()[0][0].value == 2


def test_a_plain_write_and_a_transaction_on_one_document(db: firestore.Client) -> None:
    """Either the write waits for the transaction, or the transaction is run again: no update is lost."""
    reference = db.document("c/a")
    reference.set({"n": 0, "w": 0})
    attempts: list[int] = []
    writer: list[threading.Thread] = []

    @firestore.transactional
    def run(transaction: firestore.Transaction) -> None:
        n = reference.get(transaction=transaction).get("n")
        attempts.append(n)
        if not writer:
            writer.append(threading.Thread(target=lambda: reference.update({"n": firestore.Increment(10)})))
            writer[0].start()
            time.sleep(0.3)
        transaction.update(reference, {"n": n + 1})

    run(db.transaction())
    writer[0].join()
    assert reference.get().get("n") == 11


class TestReadOnly:
    def test_keeps_its_snapshot(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        reference.set({"n": 1})
        transaction = db.transaction(read_only=True)
        transaction._begin()
        assert reference.get(transaction=transaction).get("n") == 1
        reference.set({"n": 2})
        db.document("c/b").set({"n": 2})
        assert reference.get(transaction=transaction).get("n") == 1
        assert [s.id for s in transaction.get(db.collection("c").limit(10))] == ["a"]
        assert db.collection("c").count().get(transaction=transaction)[0][0].value == 1
        transaction._rollback()
        assert reference.get().get("n") == 2

    def test_refuses_writes(self, db: firestore.Client) -> None:
        transaction = db.transaction(read_only=True)
        transaction._begin()
        transaction._write_pbs = _set(db, "c/a")
        with pytest.raises(exceptions.InvalidArgument, match="read-only"):
            transaction._commit()

    def test_does_not_hold_up_writers(self, db: firestore.Client) -> None:
        reference = db.document("c/a")
        reference.set({"n": 1})
        transaction = db.transaction(read_only=True)
        transaction._begin()
        reference.get(transaction=transaction)
        # A lock would have failed it.
        reference.set({"n": 2}, retry=None)
        transaction._rollback()


class TestEnds:
    def test_rollback_twice(self, db: firestore.Client) -> None:
        transaction = db.transaction()
        transaction._begin()
        identity = transaction.id
        transaction._rollback()
        transaction._id = identity
        transaction._rollback()

    def test_a_committed_transaction_cannot_commit_again(self, db: firestore.Client) -> None:
        transaction = db.transaction()
        transaction._begin()
        identity = transaction.id
        transaction._write_pbs = _set(db, "c/a")
        transaction._commit()
        transaction._id = identity
        transaction._write_pbs = _set(db, "c/b")
        with pytest.raises((exceptions.Aborted, exceptions.InvalidArgument)):
            transaction._commit()
        assert not db.document("c/b").get().exists

    def test_commit_without_writes(self, db: firestore.Client) -> None:
        transaction = db.transaction()
        transaction._begin()
        db.document("c/a").get(transaction=transaction)
        assert transaction._commit() == []


def _set(db: firestore.Client, path: str) -> list[Any]:
    batch = db.batch()
    batch.set(db.document(path), {"n": 1})
    return batch._write_pbs
