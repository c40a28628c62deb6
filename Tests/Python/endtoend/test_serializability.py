"""Many clients append to the same lists in transactions over gRPC; the history must have a serial order.

The threads' actions follow from the seed; their interleaving does not, so a failure prints the history's anomaly and
the seed repeats the kind of work. See `support/history.py` for the judgement.
"""

from __future__ import annotations

import itertools
import os
import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import pytest

from support.calls import Calls
from support.history import COMMITTED, FAILED, UNKNOWN, Transaction, anomalies
from support.patience import PATIENCE
from support.program import BINARY, EFFORT, Program, assert_sound
from support.wire import METHODS, message_class

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

TRANSACTIONS = 3000 if EFFORT == 1 else 100_000 * max(1, EFFORT // 10)
CLIENTS = 24
#: The number of lists in use: few, so that the clients conflict.
GROUPS, LISTS = 3, 4
#: Afterwards other lists replace them, so that lists stay short.
TRANSACTIONS_OF_AN_EPOCH = 400

DATABASE = "projects/s/databases/(default)"
ROOT = f"{DATABASE}/documents"
Write = message_class("Write")


class Client:
    """One thread's share of the history."""

    def __init__(self, number: int, seed: int, calls: Calls, started: itertools.count) -> None:
        self.number = number
        self.choice = random.Random(f"{seed} {number}")
        self.calls = calls
        self.started = started
        self.elements = itertools.count(number * 10_000_000)
        self.history: list[Transaction] = []
        self.fault: BaseException | None = None

    def run(self) -> None:
        kinds = [self.read_and_write, self.query_and_write, self.blind, self.look, self.two_looks, self.give_up]
        weights = [40, 15, 15, 15, 12, 3]
        try:
            while (ticket := next(self.started)) < TRANSACTIONS:
                self.epoch = ticket // TRANSACTIONS_OF_AN_EPOCH
                kind = self.choice.choices(kinds, weights)[0]
                one = Transaction(f"{kind.__name__}{len(self.history)}@{self.number}", outcome=FAILED)
                self.history.append(one)
                one.began = time.monotonic()
                try:
                    kind(one)
                except grpc.RpcError as error:
                    if error.code() in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE):
                        one.outcome = UNKNOWN
                    elif error.code() is not grpc.StatusCode.ABORTED:
                        raise
                one.ended = time.monotonic()
        except BaseException as error:  # noqa: BLE001 - told to the test's thread
            self.fault = error

    # Requests

    def key(self, group: int | None = None) -> str:
        group = self.choice.randrange(GROUPS) if group is None else group
        return f"{self.epoch}-{group}-{self.choice.randrange(LISTS)}"

    def keys(self, count: int) -> list[str]:
        return sorted({self.key() for _ in range(count)}, key=lambda _: self.choice.random())

    def get(self, one: Transaction, keys: list[str], transaction: bytes | None, **begin: Any) -> bytes:
        request = METHODS["BatchGetDocuments"].request(database=DATABASE)
        request.documents.extend(f"{ROOT}/lists/{key}" for key in keys)
        for answer in self.ask("BatchGetDocuments", request, transaction, begin):
            transaction = answer.transaction or transaction
            if answer.HasField("found"):
                one.reads.append((answer.found.name.rsplit("/")[-1], elements(answer.found)))
            elif answer.missing:
                one.reads.append((answer.missing.rsplit("/")[-1], ()))
        return transaction or b""

    def query(self, one: Transaction, group: int, transaction: bytes | None, **begin: Any) -> bytes:
        """All lists of a group; missing lists are read as empty."""
        request = METHODS["RunQuery"].request(parent=ROOT)
        query = request.structured_query
        query.from_.add(collection_id="lists")
        query.where.field_filter.field.field_path = "group"
        query.where.field_filter.op = 5
        query.where.field_filter.value.string_value = f"{self.epoch}-{group}"
        found = {f"{self.epoch}-{group}-{number}": () for number in range(LISTS)}
        for answer in self.ask("RunQuery", request, transaction, begin):
            transaction = answer.transaction or transaction
            if answer.HasField("document"):
                found[answer.document.name.rsplit("/")[-1]] = elements(answer.document)
        one.reads += found.items()
        return transaction or b""

    def ask(self, name: str, request: Any, transaction: bytes | None, begin: dict[str, Any]) -> list[Any]:
        if transaction is not None:
            request.transaction = transaction
        elif begin.get("mode") == "write":
            request.new_transaction.read_write.SetInParent()
        elif begin.get("mode") == "read":
            request.new_transaction.read_only.SetInParent()
        return self.calls(name, request)

    def append(self, one: Transaction, key: str, request: Any, known: tuple[int, ...] | None) -> None:
        """By writing the whole list, which requires that it was read, or by a transform."""
        group = key.rsplit("-", 1)[0]
        new = [next(self.elements) for _ in range(self.choice.choice((1, 1, 2)))]
        write = request.writes.add()
        write.update.name = f"{ROOT}/lists/{key}"
        write.update.fields["group"].string_value = group
        if known is not None and self.choice.random() < 0.7:
            values = write.update.fields["v"].array_value.values
            for element in (*known, *new):
                values.add(integer_value=element)
        else:
            write.update_mask.field_paths.append("group")
            transform = write.update_transforms.add(field_path="v")
            for element in new:
                transform.append_missing_elements.values.add(integer_value=element)
        one.appends += [(key, element) for element in new]

    def commit(self, one: Transaction, keys: list[str], transaction: bytes | None) -> None:
        request = METHODS["Commit"].request(database=DATABASE)
        if transaction is not None:
            request.transaction = transaction
        known = dict(one.reads) if transaction is not None else {}
        for key in dict.fromkeys(keys):
            self.append(one, key, request, known.get(key))
        answer = self.calls("Commit", request)
        one.outcome = COMMITTED
        if request.writes:
            one.commit_time = answer.commit_time.ToNanoseconds()

    # Kinds of transactions

    def read_and_write(self, one: Transaction) -> None:
        keys = self.keys(self.choice.randrange(1, 4))
        transaction = self.get(one, keys, None, mode="write")
        # At times to a list that was not read.
        targets = keys[: self.choice.randrange(1, 3)] + ([self.key()] if self.choice.random() < 0.2 else [])
        self.commit(one, targets, transaction)

    def query_and_write(self, one: Transaction) -> None:
        group = self.choice.randrange(GROUPS)
        transaction = self.query(one, group, None, mode="write")
        # To the shortest, so that missing lists are created, and phantoms occur.
        shortest = min(one.reads, key=lambda read: len(read[1]))[0]
        self.commit(one, [self.choice.choice((shortest, self.key(group)))], transaction)

    def blind(self, one: Transaction) -> None:
        self.commit(one, self.keys(self.choice.randrange(1, 4)), None)

    def look(self, one: Transaction) -> None:
        """Without a transaction; each request is a snapshot of one moment."""
        if self.choice.random() < 0.5:
            self.get(one, self.keys(4), None)
        else:
            self.query(one, self.choice.randrange(GROUPS), None)
        one.outcome = COMMITTED

    def two_looks(self, one: Transaction) -> None:
        mode = self.choice.choice(("read", "write"))
        transaction = self.get(one, self.keys(2), None, mode=mode)
        self.query(one, self.choice.randrange(GROUPS), transaction)
        self.commit(one, [self.key()] if mode == "write" and self.choice.random() < 0.5 else [], transaction)

    def give_up(self, one: Transaction) -> None:
        transaction = self.get(one, self.keys(2), None, mode="write")
        request = METHODS["Rollback"].request(database=DATABASE, transaction=transaction)
        self.calls("Rollback", request)


def elements(document: Any) -> tuple[int, ...]:
    return tuple(value.integer_value for value in document.fields["v"].array_value.values)


def final_lists(calls: Calls) -> dict[str, tuple[int, ...]]:
    request = METHODS["RunQuery"].request(parent=ROOT)
    request.structured_query.from_.add(collection_id="lists")
    found = calls("RunQuery", request, timeout=PATIENCE)
    return {a.document.name.rsplit("/")[-1]: elements(a.document) for a in found if a.HasField("document")}


def test_a_history_has_a_serial_order(tmp_path: Path) -> None:
    seed = int(os.environ.get("HEARTH_TEST_SEED", str(random.randrange(10**6))))
    server = Program(tmp_path)
    channels = [Calls(server.address) for _ in range(4)]
    try:
        tickets = itertools.count()
        clients = [Client(number, seed, channels[number % 4], tickets) for number in range(CLIENTS)]
        threads = [threading.Thread(target=client.run, daemon=True) for client in clients]
        started = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - started
        assert not [c.fault for c in clients if c.fault], f"seed {seed}"
        final = final_lists(channels[0])
    finally:
        for channel in channels:
            channel.close()
        server.terminate()
    history = [one for client in clients for one in client.history]
    outcomes = Counter(one.outcome for one in history)
    found = anomalies(history, final)
    committed = [one for one in history if one.outcome == COMMITTED]
    writing = [one for one in committed if one.appends]
    print(
        f"seed {seed}: {len(history)} transactions in {seconds:.0f} s, {dict(outcomes)}, {len(writing)} committed with writes, "
        f"{sum(len(e) for e in final.values())} elements in {len(final)} lists"
    )
    assert found == [], f"seed {seed}"
    assert_sound(tmp_path / "hearth-data")
    assert len(writing) > TRANSACTIONS / 4
    _the_judge_sees(history, final, random.Random(seed))


def _the_judge_sees(history: list[Transaction], final: dict[str, tuple[int, ...]], choice: random.Random) -> None:
    """The same history with one false entry is not accepted as serial."""
    readers = [one for one in history if one.outcome == COMMITTED and any(len(r[1]) > 3 for r in one.reads) and one.appends]
    victim = choice.choice(readers)
    index, (key, read) = next((i, r) for i, r in enumerate(victim.reads) if len(r[1]) > 3)
    # As if it had read an older state than its commit is based on.
    victim.reads[index] = (key, read[:1])
    assert anomalies(history, final) != []
    victim.reads[index] = (key, read)
    assert anomalies(history, final) == []


class TestTheJudge:
    """Each anomaly that isolation levels are named for, in its smallest form."""

    @staticmethod
    def judge(final: dict[str, tuple[int, ...]], *transactions: Transaction) -> list[str]:
        return anomalies(transactions, final)

    @staticmethod
    def one(name: str, reads: dict[str, tuple[int, ...]] | None = None, appends: Any = (), **more: Any) -> Transaction:
        # All at the same time, unless specified otherwise.
        return Transaction(name, **{"began": 0, "ended": 1, **more}, reads=list((reads or {}).items()), appends=list(appends))

    def test_serial(self) -> None:
        a = self.one("a", {"x": ()}, [("x", 1)], commit_time=1)
        b = self.one("b", {"x": (1,)}, [("x", 2), ("y", 3)], commit_time=2)
        c = self.one("c", {"x": (1, 2), "y": (3,)})
        assert self.judge({"x": (1, 2), "y": (3,)}, c, b, a) == []

    def test_lost_update(self) -> None:
        a = self.one("a", {"x": ()}, [("x", 1)])
        b = self.one("b", {"x": ()}, [("x", 2)])
        assert "lost: 1" in self.judge({"x": (2,)}, a, b)[0]
        # Both exist, but the second did not see the first.
        (found,) = self.judge({"x": (1, 2)}, a, b)
        assert "a -ww-> b -rw->" in found or "b -rw-> a -ww->" in found

    def test_write_skew(self) -> None:
        a = self.one("a", {"x": (), "y": ()}, [("x", 1)])
        b = self.one("b", {"x": (), "y": ()}, [("y", 2)])
        (found,) = self.judge({"x": (1,), "y": (2,)}, a, b)
        assert found.count("-rw->") == 2

    def test_write_cycle(self) -> None:
        a = self.one("a", None, [("x", 1), ("y", 3)])
        b = self.one("b", None, [("x", 2), ("y", 4)])
        (found,) = self.judge({"x": (1, 2), "y": (4, 3)}, a, b)
        assert found.count("-ww->") == 2

    def test_read_skew(self) -> None:
        a = self.one("a", None, [("x", 1), ("y", 2)])
        b = self.one("b", {"x": (1,), "y": ()})
        (found,) = self.judge({"x": (1,), "y": (2,)}, a, b)
        assert "-wr->" in found and "-rw->" in found

    def test_aborted_and_intermediate_reads(self) -> None:
        a = self.one("a", None, [("x", 1)], outcome=FAILED)
        b = self.one("b", {"x": (1,)})
        assert "which went ()" in self.judge({}, a, b)[0]
        assert "which failed" in self.judge({"x": (1,)}, a)[0]
        a = self.one("a", None, [("x", 1), ("x", 2)])
        assert "a half of a" in self.judge({"x": (1, 2)}, a, b)[0]

    def test_inventions_and_doubles(self) -> None:
        assert "nobody appended 1" in self.judge({"x": (1,)})[0]
        assert "twice" in self.judge({"x": (1, 1)}, self.one("a", None, [("x", 1)]))[0]

    def test_a_stale_read(self) -> None:
        a = self.one("a", None, [("x", 1)], began=0, ended=1)
        b = self.one("b", {"x": ()}, began=2, ended=3)
        (found,) = self.judge({"x": (1,)}, a, b)
        assert "-rt->" in found and "-rw->" in found
        b.began = 0.5
        assert self.judge({"x": (1,)}, a, b) == []

    def test_commit_times(self) -> None:
        a = self.one("a", None, [("x", 1)], commit_time=2)
        b = self.one("b", None, [("x", 2)], commit_time=2)
        assert "b follows a" in self.judge({"x": (1, 2)}, a, b)[0]

    def test_without_an_answer(self) -> None:
        a = self.one("a", None, [("x", 1)], outcome=UNKNOWN)
        assert self.judge({}, a) == []
        a = self.one("a", None, [("x", 1)], outcome=UNKNOWN)
        assert self.judge({"x": (1,)}, a, self.one("b", {"x": (1,)})) == []
