"""The server is killed at random moments under load; acknowledged data exists after the restart.

Every worker thread does one kind of work through Google's client, with numbers that only grow, and records the
requested and the acknowledged numbers:

- a *batch* writes its number into five documents, and a sixth one, which every third batch deletes;
- a *transfer* moves money between two of the accounts in a transaction, and writes an entry of the ledger with it;
- a *chain* reads its documents in a transaction by a query and writes each one's number plus one.

After each kill `hearth check` checks the folder before a server opens it, then a new server is compared with the
records.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pytest
from google.api_core import exceptions
from google.api_core.retry import retry_unary
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter

from support.patience import PATIENCE
from support.program import BINARY, EFFORT, Program, assert_sound

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

ROUNDS = 6 if EFFORT == 1 else 50 * max(1, EFFORT // 10)
BATCHERS = TRANSFERERS = 3
CHAINERS = 2
ACCOUNTS = 12
PARTS = 5
START_BALANCE = 1000
SECONDS_MAX = 1.0

INDEXES = """{"indexes": [{"collectionGroup": "ledger", "queryScope": "COLLECTION",
  "fields": [{"fieldPath": "from", "order": "ASCENDING"}, {"fieldPath": "amount", "order": "DESCENDING"}]}]}"""


@dataclass
class Promises:
    """The acknowledged writes of all rounds."""

    #: For each batcher and each chainer the last acknowledged and the last requested number.
    acknowledged: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    #: Names of ledger entries.
    transfers_asked: set[str] = field(default_factory=set)
    transfers: set[str] = field(default_factory=set)
    commits: int = 0

    def __post_init__(self) -> None:
        self.lock = threading.Lock()

    def ask(self, worker: str) -> int:
        with self.lock:
            self.asked[worker] = self.asked.get(worker, 0) + 1
            return self.asked[worker]

    def acknowledge(self, worker: str, number: int) -> None:
        with self.lock:
            self.acknowledged[worker] = number
            self.commits += 1


class Load:
    """The threads of one round."""

    def __init__(self, address: str, promises: Promises, seed: int) -> None:
        self.promises = promises
        self.seed = seed
        self.is_over = _Time.is_over = threading.Event()
        self.faults: list[BaseException] = []
        kinds = [(self.batch, BATCHERS), (self.transfer, TRANSFERERS), (self.chain, CHAINERS)]
        self.threads: list[threading.Thread] = []
        self.clients: list[firestore.Client] = []
        for kind, count in kinds:
            for number in range(count):
                self.clients.append(connect(address))
                arguments = (kind, f"{kind.__name__}{number}", self.clients[-1])
                self.threads.append(threading.Thread(target=self.work, args=arguments, daemon=True))

    def work(self, kind, worker: str, db: firestore.Client) -> None:
        choice = random.Random(f"{self.seed} {worker}")
        try:
            while not self.is_over.is_set():
                try:
                    kind(worker, db, choice)
                except exceptions.GoogleAPICallError as error:
                    # The server was killed, or a transaction has failed five times.
                    if self.is_over.is_set() or not isinstance(error, exceptions.Aborted):
                        return
                except ValueError as error:
                    # The client's error when it has retried a transaction often enough.
                    if not self.is_over.is_set() and "Failed to commit transaction" not in str(error):
                        raise
        except BaseException as error:  # noqa: BLE001 - told to the test's thread
            self.faults.append(error)

    def end(self) -> bool:
        """Whether all threads end after the server was killed."""
        self.is_over.set()
        for thread in self.threads:
            thread.join(PATIENCE)
        for db in self.clients:
            db.close()
        return not any(thread.is_alive() for thread in self.threads)

    def batch(self, worker: str, db: firestore.Client, choice: random.Random) -> None:
        number = self.promises.ask(worker)
        batch = db.batch()
        for part in range(PARTS):
            batch.set(
                db.document(f"batches/{worker}-{part}"),
                {"n": number, "tags": [number, f"t{number % 7}"], "text": "x" * choice.randrange(800)},
            )
        odd = db.document(f"batches/{worker}-odd/marks/m")
        if number % 3 == 0:
            batch.delete(odd)
        else:
            batch.set(odd, {"n": number})
        batch.commit(timeout=PATIENCE, retry=None)
        self.promises.acknowledge(worker, number)

    def transfer(self, worker: str, db: firestore.Client, choice: random.Random) -> None:
        number = self.promises.ask(worker)
        source, target = choice.sample(range(ACCOUNTS), 2)
        amount = choice.randrange(1, 50)
        entry = f"{worker}-{number}"
        with self.promises.lock:
            self.promises.transfers_asked.add(entry)

        @firestore.transactional
        def run(transaction: firestore.Transaction) -> None:
            accounts = [db.document(f"accounts/{index}") for index in (source, target)]
            found = {s.id: s.get("balance") for s in db.get_all(accounts, transaction=transaction)}
            transaction.update(accounts[0], {"balance": found[str(source)] - amount})
            transaction.update(accounts[1], {"balance": found[str(target)] + amount})
            transaction.create(db.document(f"ledger/{entry}"), {"from": source, "to": target, "amount": amount})

        run(db.transaction())
        self.promises.acknowledge(worker, number)
        with self.promises.lock:
            self.promises.transfers.add(entry)

    def chain(self, worker: str, db: firestore.Client, choice: random.Random) -> None:
        number = self.promises.ask(worker)

        @firestore.transactional
        def run(transaction: firestore.Transaction) -> None:
            for snapshot in transaction.get(db.collection("chains").where(filter=FieldFilter("worker", "==", worker))):
                transaction.update(snapshot.reference, {"n": snapshot.get("n") + 1, "asked": number})

        run(db.transaction())
        self.promises.acknowledge(worker, number)


def connect(address: str) -> firestore.Client:
    """A client of a server. The variable is read when a client is created; other tests use it for their own server."""
    with mock.patch.dict(os.environ, {"FIRESTORE_EMULATOR_HOST": address}):
        return firestore.Client(project="crash", credentials=AnonymousCredentials())


def prepare(db: firestore.Client) -> None:
    batch = db.batch()
    for index in range(ACCOUNTS):
        batch.set(db.document(f"accounts/{index}"), {"balance": START_BALANCE})
    for number in range(CHAINERS):
        for part in range(PARTS):
            batch.set(db.document(f"chains/{number}-{part}"), {"worker": f"chain{number}", "n": 0, "asked": 0})
    batch.commit()


def contents(db: firestore.Client, collection: str) -> dict[str, dict]:
    return {snapshot.id: snapshot.to_dict() for snapshot in db.collection(collection).stream()}


def broken_promises(db: firestore.Client, promises: Promises) -> list[str]:
    """The violated invariants, in words."""
    broken: list[str] = []
    batches = contents(db, "batches")
    for number in range(BATCHERS):
        worker = f"batch{number}"
        found = {batches.get(f"{worker}-{part}", {"n": 0})["n"] for part in range(PARTS)}
        if len(found) != 1:
            broken.append(f"a batch of {worker} is half there: {sorted(found)}")
            continue
        (last,) = found
        low, high = promises.acknowledged.get(worker, 0), promises.asked.get(worker, 0)
        if not low <= last <= high:
            broken.append(f"{worker} is at {last}; {low} was acknowledged, {high} asked for")
        mark = db.document(f"batches/{worker}-odd/marks/m").get().to_dict()
        expected = None if last % 3 == 0 else {"n": last}
        if mark != expected:
            broken.append(f"the mark of {worker} at {last} is {mark}")

    accounts = {int(name): value["balance"] for name, value in contents(db, "accounts").items()}
    ledger = contents(db, "ledger")
    expected = dict.fromkeys(range(ACCOUNTS), START_BALANCE)
    for entry in ledger.values():
        expected[entry["from"]] -= entry["amount"]
        expected[entry["to"]] += entry["amount"]
    if accounts != expected:
        broken.append(f"the accounts are {accounts}, the ledger says {expected}")
    if lost := promises.transfers - ledger.keys():
        broken.append(f"acknowledged transfers are lost: {sorted(lost)}")
    if strange := ledger.keys() - promises.transfers_asked:
        broken.append(f"nobody asked for the transfers {sorted(strange)}")
    # The same entries by the index that is built in between.
    ordered = db.collection("ledger").where(filter=FieldFilter("from", "==", 3)).order_by("amount", direction="DESCENDING").stream()
    amounts = [snapshot.get("amount") for snapshot in ordered]
    if amounts != sorted((e["amount"] for e in ledger.values() if e["from"] == 3), reverse=True):
        broken.append("a query of the ledger misses entries or has too many")

    chains = contents(db, "chains")
    for number in range(CHAINERS):
        worker = f"chain{number}"
        found = {(c["n"], c["asked"]) for c in chains.values() if c["worker"] == worker}
        if len(found) != 1:
            broken.append(f"a transaction of {worker} is half there: {sorted(found)}")
            continue
        (steps, asked), = found
        if asked < promises.acknowledged.get(worker, 0):
            broken.append(f"{worker} is at {asked}, but {promises.acknowledged[worker]} was acknowledged")
        if steps > promises.asked.get(worker, 0):
            broken.append(f"{worker} went {steps} steps of {promises.asked.get(worker, 0)}")
    return broken


def settle(db: firestore.Client, promises: Promises) -> None:
    """After a crash the server's state is the new base, including requests that were never answered."""
    for number in range(BATCHERS):
        found = db.document(f"batches/batch{number}-0").get().to_dict()
        promises.acknowledged[f"batch{number}"] = found["n"] if found else 0
    promises.transfers = set(contents(db, "ledger"))
    for number in range(CHAINERS):
        promises.acknowledged[f"chain{number}"] = db.document(f"chains/{number}-0").get().get("asked")


class _Time:
    """The clock of the client library's retries, which would otherwise continue for a minute after the server was
    killed.
    """

    monotonic = staticmethod(time.monotonic)
    is_over = threading.Event()

    @classmethod
    def sleep(cls, seconds: float) -> None:
        if cls.is_over.wait(seconds):
            raise exceptions.ServiceUnavailable("the server was killed")


def test_killed_at_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry_unary, "time", _Time)
    seed = int(os.environ.get("HEARTH_TEST_SEED", str(random.randrange(10**6))))
    choice = random.Random(seed)
    data = tmp_path / "hearth-data"
    indexes = tmp_path / "firestore.indexes.json"
    promises = Promises()
    faults: list[BaseException] = []
    in_flight = 0
    for number in range(ROUNDS):
        where = f"seed {seed}, round {number}"
        if choice.random() < 0.3:
            # Killed during or just before start and recovery.
            process = Program.spawn(tmp_path)
            time.sleep(choice.random() * 0.05)
            process.kill()
            process.communicate()
            if (data / ".lock").exists():
                assert_sound(data)
        # The index is built under load, and the server is killed meanwhile; without the file the index stays and is
        # updated.
        if number == 1:
            indexes.write_text(INDEXES)
        server = Program(tmp_path)
        try:
            db = connect(server.address)
            if number == 0:
                prepare(db)
            else:
                broken = broken_promises(db, promises)
                assert not broken, (where, broken)
                settle(db, promises)
            db.close()
            load = Load(server.address, promises, seed * 1000 + number)
            for thread in load.threads:
                thread.start()
            time.sleep(0.05 + choice.random() ** 2 * SECONDS_MAX)
            server.kill()
            assert load.end(), where
        finally:
            if server.process.poll() is None:
                server.kill()
        faults += load.faults
        assert not faults, (where, faults)
        in_flight += sum(promises.asked[w] - promises.acknowledged.get(w, 0) for w in promises.asked)
        counted = assert_sound(data)
    print(f"seed {seed}: {ROUNDS} kills, {promises.commits} acknowledged commits, at the end {counted}")
    # A load without progress proves nothing.
    assert promises.commits > ROUNDS * 5, where


class TestTheJudge:
    """Deliberate violations of the invariants are found."""

    @pytest.mark.parametrize(
        ("damage", "found"),
        [
            (lambda db: db.document("batches/batch0-2").update({"n": 7}), "batch0 is half there"),
            (lambda db: db.document("batches/batch0-odd/marks/m").delete(), "the mark of batch0"),
            (lambda db: db.document("accounts/1").update({"balance": firestore.Increment(1)}), "the ledger says"),
            (lambda db: db.document("ledger/transfer0-1").delete(), "transfers are lost"),
            (lambda db: db.document("ledger/x").set({"from": 1, "to": 1, "amount": 1}), "nobody asked"),
            (lambda db: db.document("chains/0-0").update({"n": 9}), "chain0 is half there"),
            (lambda db: [db.document(f"chains/0-{i}").update({"n": 0, "asked": 0}) for i in range(5)], "chain0 is at 0"),
            (lambda db: [db.document(f"batches/batch0-{i}").update({"n": 9}) for i in range(5)], "batch0 is at 9"),
        ],
    )
    def test_finds(self, tmp_path: Path, damage, found: str) -> None:
        server = Program(tmp_path, "--memory")
        try:
            db = connect(server.address)
            prepare(db)
            promises = Promises()
            load = Load(server.address, promises, 1)
            load.batch("batch0", db, random.Random(1))
            load.transfer("transfer0", db, random.Random(1))
            load.chain("chain0", db, random.Random(1))
            assert broken_promises(db, promises) == []
            damage(db)
            assert any(found in sentence for sentence in broken_promises(db, promises))
        finally:
            server.kill()


#: Kills of the test below: 1,000 with HEARTH_TEST_KILLS=1000 take about half an hour.
KILLS = int(os.environ.get("HEARTH_TEST_KILLS", str(8 * EFFORT)))
#: The log is copied after this many KiB, which is after every few commits.
CHECKPOINT_KIB = os.environ.get("HEARTH_TEST_CHECKPOINT_KIB", "64")
WRITERS = 4
KEYS = 20


class Writer(threading.Thread):
    """Overwrites documents of its own by numbers that only grow, until the server is killed."""

    def __init__(self, port: int, name: str, start: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.path = f"/v1/projects/k/databases/(default)/documents/{name}"
        self.asked = start
        self.acknowledged: dict[int, int] = {}
        self.tried: dict[int, int] = {}
        self.choice = random.Random(seed)
        self.faults: list[str] = []

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            while True:
                self.asked += 1
                key = self.choice.randrange(KEYS)
                fields = {
                    "n": {"integerValue": str(self.asked)},
                    "text": {"bytesValue": "x" * 4 * self.choice.randrange(1, 3000)},
                }
                self.tried[key] = self.asked
                connection.request("PATCH", f"{self.path}/{key}", json.dumps({"fields": fields}))
                answer = connection.getresponse()
                body = answer.read()
                if answer.status != 200:
                    self.faults.append(f"{answer.status} {body!r}")
                    return
                self.acknowledged[key] = self.asked
        except (OSError, http.client.HTTPException):
            # The server was killed.
            return
        finally:
            connection.close()


def numbers(server: Program, name: str) -> dict[int, int]:
    status, body = server.send("GET", f"/v1/projects/k/databases/(default)/documents/{name}?pageSize=300&mask.fieldPaths=n")
    assert status == 200, body
    documents = json.loads(body).get("documents", [])
    return {int(d["name"].rsplit("/", 1)[1]): int(d["fields"]["n"]["integerValue"]) for d in documents}


def test_killed_while_the_log_is_copied(tmp_path: Path) -> None:
    seed = int(os.environ.get("HEARTH_TEST_SEED", str(random.randrange(10**6))))
    choice = random.Random(seed)
    expected: dict[str, dict[int, tuple[int, int]]] = {f"w{number}": {} for number in range(WRITERS)}
    commits, started = 0, time.monotonic()
    for kill in range(KILLS):
        where = f"seed {seed}, kill {kill}"
        server = Program(tmp_path, "--checkpoint-kib", CHECKPOINT_KIB)
        writers: list[Writer] = []
        try:
            for name, bounds in expected.items():
                found = numbers(server, name)
                for key, (low, high) in bounds.items():
                    assert low <= found.get(key, 0) <= high, (where, name, key, found.get(key), low, high)
                    # The present state is the new base, including requests that were never answered.
                    bounds[key] = (found.get(key, 0), found.get(key, 0))
                top = max([high for _, high in bounds.values()], default=0) + 1000
                writers.append(Writer(server.port, name, top, choice.randrange(10**9)))
            for writer in writers:
                writer.start()
            time.sleep(choice.random() ** 2 * 0.4)
            if kill % 50 == 0:
                assert b"\nhearth_checkpoints_unsafe 0\n" in server.send("GET", "/metrics")[1], where
        finally:
            server.kill()
        for writer, bounds in zip(writers, expected.values()):
            writer.join(PATIENCE)
            assert not writer.is_alive() and not writer.faults, (where, writer.faults)
            commits += len(writer.acknowledged)
            for key, tried in writer.tried.items():
                bounds[key] = (max(bounds.get(key, (0, 0))[0], writer.acknowledged.get(key, 0)), tried)
        assert_sound(tmp_path / "hearth-data")
        if kill % 100 == 99:
            print(f"{kill + 1} kills", flush=True)
    print(f"seed {seed}: {KILLS} kills in {time.monotonic() - started:.0f} s, {commits} documents acknowledged last")
    assert commits > KILLS, where
