"""Combines random requests to episodes. An episode is a new database and a sequence of requests.

Everything follows from the seed and the episode's number, never from an answer, so that an episode can be replayed, and
shortened, without the servers.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from .queries import Queries
from .reads import Reads
from .request import Json, Request, reference
from .rest import expressible
from .spoil import spoil
from .world import World
from .writes import Writes

STEPS = 10
# The share of episodes with a large collection.
CROWDED = 0.12


class Episode:
    """Draws the requests of one episode."""

    def __init__(self, seed: int, number: int, transport: str, run: str) -> None:
        self._rng = Random(f"{seed}/{number}")
        self._transport = transport
        # `run` separates runs of one seed on the same servers; nothing else depends on it.
        # Lower case: the emulator fails on projects with upper-case letters.
        self.project = f"demo-{seed}-{number}-{run}"
        self.world = World(self._rng, self.project)
        self._writes = Writes(self.world)
        self._reads = Reads(self.world)
        self._queries = Queries(self.world, self._reads)
        self.requests: list[Request] = []

    @property
    def _next(self) -> int:
        return len(self.requests)

    def draw(self) -> list[Request]:
        for _ in range(self._rng.choice([1, 1, 2])):
            self._add(self._writes.seed(self._next))
        if self._rng.random() < CROWDED:
            self._add(self._writes.crowd(self._next))
        for _ in range(STEPS):
            self._step()
        return self.requests

    def _step(self) -> None:
        rng = self._rng
        kind = rng.choices(
            ["write", "query", "read", "transaction", "snapshot", "pages", "generated", "misuse"],
            [44, 26, 12, 8, 3, 4, 1, 2],
        )[0]
        match kind:
            case "write":
                for _ in range(rng.randint(2, 5)):
                    self._add(self._maybe_spoiled(self._writes.any(self._next)))
                for _ in range(rng.randint(1, 2)):
                    self._add(self._reads.any(self._next))
            case "query":
                for _ in range(rng.randint(4, 8)):
                    self._add(self._maybe_spoiled(self._queries.any(self._next)))
            case "read":
                for _ in range(rng.randint(3, 5)):
                    self._add(self._maybe_spoiled(self._reads.any(self._next)))
            case "transaction":
                self._transaction()
            case "snapshot":
                self._snapshot()
            case "pages":
                for request in self._reads.pages(self._next):
                    self._add(request)
                for request in self._reads.collection_pages(self._next):
                    self._add(request)
            case "generated":
                self._generated()
            case "misuse":
                self._misuse()

    # Sequences

    def _transaction(self) -> None:
        """Begin, some reads, then commit or rollback, without concurrent writes.

        The emulator makes a writer wait two seconds for other transactions' locks, so nothing else may write while a
        transaction is open. The end is always included, because an open transaction holds its locks.
        """
        rng, database = self._rng, self.world.database
        options: Json = rng.choice([None, None, {}, {"readWrite": {}}])
        transaction = self._begin(options)
        for _ in range(rng.randint(0, 3)):
            self._read_in(transaction)
        match rng.choices(["commit", "plain commit", "rollback"], [60, 15, 25])[0]:
            case "commit":
                self._add(self._writes.commit(self._next, transaction))
                # If the commit is rejected as malformed, the emulator keeps the transaction and its locks.
                self._call("Rollback", {"database": database, "transaction": transaction}, "Rollback (after commit)")
            case "plain commit":
                write = {"update": {"name": self.world.name(), "fields": self.world.fields()}}
                body = {"database": database, "transaction": transaction, "writes": [write]}
                self._call("Commit", body, "Commit in transaction")
            case _:
                self._call("Rollback", {"database": database, "transaction": transaction})
        if rng.random() < 0.4:
            self._after_the_end(transaction)

    def _after_the_end(self, transaction: Json) -> None:
        """Uses the id of a transaction that has ended."""
        database = self.world.database
        match self._rng.randrange(4):
            case 0:
                self._call("Rollback", {"database": database, "transaction": transaction}, "Rollback (ended)")
            case 1:
                body = {"database": database, "transaction": transaction, "writes": []}
                self._call("Commit", body, "Commit (ended transaction)")
            case 2:
                body = {"name": self.world.name(), "transaction": transaction}
                self._call("GetDocument", body, "GetDocument (ended transaction)", rest=False)
            case _:
                again = self._begin({"readWrite": {"retryTransaction": transaction}})
                self._call("Rollback", {"database": database, "transaction": again})

    def _snapshot(self) -> None:
        """A read-only transaction keeps its snapshot while others write."""
        options: Json = {"readOnly": {}}
        time = self.world.read_time()
        if time is not None and self._rng.random() < 0.4:
            options["readOnly"]["readTime"] = time
        transaction = self._begin(options)
        for _ in range(3):
            self._read_in(transaction)
            self._add(self._writes.any(self._next))
        self._read_in(transaction)
        body: Json = {"database": self.world.database, "transaction": transaction}
        if self._rng.random() < 0.2:
            self._add(self._writes.commit(self._next, transaction))
        self._call("Rollback", body)

    def _begin(self, options: Json) -> Json:
        """Begins a transaction, separately or together with its first read; returns the reference to its id."""
        if options is not None and self._rng.random() < 0.3:
            read = self._reads.batch_get(self._next)
            if self._rng.random() < 0.5:
                # A plain query: when the emulator rejects one, it keeps the new transaction, whose id no client knows.
                query = {"from": [{"collectionId": self.world.collection()}], "limit": 3}
                read = Request(self._next, "", "RunQuery", {"parent": self.world.root, "structuredQuery": query})
            read.body.pop("readTime", None)
            read.body["newTransaction"] = options
            self._add(replace(read, kind=f"{read.method} that begins"))
            return reference(self._next - 1, 0, "transaction")
        body: Json = {"database": self.world.database}
        if options is not None:
            body["options"] = options
        self._call("BeginTransaction", body)
        return reference(self._next - 1, "transaction")

    def _read_in(self, transaction: Json) -> None:
        read = self._reads.any(self._next) if self._rng.random() < 0.5 else self._queries.any(self._next)
        # The emulator answers UNKNOWN to these in a transaction.
        if read.method == "ListCollectionIds" or read.body.get("showMissing") or _kindless(read.body):
            read = self._reads.get(self._next)
        read.body.pop("readTime", None)
        read.body["transaction"] = transaction
        # Over REST the emulator never answers a GET with a transaction.
        self._add(replace(read, kind=f"{read.method} in transaction"), grpc_only=True)

    def _generated(self) -> None:
        """A document with an id from the server; it is deleted immediately, because its position in any order is
        random.
        """
        index = self._next
        body = {"parent": self.world.root, "collectionId": "generated", "document": {"fields": self.world.fields()}}
        self._call("CreateDocument", body, "CreateDocument (generated id)")
        name = reference(index, "name")
        self._call("GetDocument", {"name": name})
        self._call("DeleteDocument", {"name": name})

    def _misuse(self) -> None:
        """Transaction ids that never existed."""
        rng, database = self._rng, self.world.database
        transaction = rng.choice(["", "AAAA", "Z2FyYmFnZQ==", "EQ=="])
        match rng.randrange(3):
            case 0:
                body: Json = {"database": database, "transaction": transaction}
                self._call("Rollback", body, "Rollback (unknown)")
            case 1:
                body = {"database": database, "transaction": transaction or "AAAA", "writes": []}
                self._call("Commit", body, "Commit (unknown transaction)")
            case _:
                query = self._queries.run(self._next)
                query.body.pop("readTime", None)
                query.body["transaction"] = transaction or "AAAA"
                self._add(replace(query, kind="RunQuery (unknown transaction)"))

    # Adding

    def _maybe_spoiled(self, request: Request) -> Request:
        return spoil(self._rng, request) if self._rng.random() < 0.12 else request

    def _call(self, method: str, body: Json, kind: str | None = None, rest: bool | None = None) -> None:
        self._add(Request(self._next, kind or method, method, body), grpc_only=rest is False)

    def _add(self, request: Request, grpc_only: bool = False) -> None:
        assert request.index == self._next
        wanted = self._transport == "rest" or self._transport == "both" and self._rng.random() < 0.4
        wanted = "rest only" in request.tags or wanted and "grpc only" not in request.tags
        rest = wanted and not grpc_only and expressible(request.method, request.body)
        self.requests.append(replace(request, rest=rest))


def _kindless(body: Json) -> bool:
    if "collectionId" in body:
        return not body["collectionId"]
    if "documents" in body:
        return False
    query = body.get("structuredQuery") or body.get("structuredAggregationQuery", {}).get("structuredQuery")
    return query is not None and not any(source.get("collectionId") for source in query["from"])
