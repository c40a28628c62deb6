"""The server is killed at random moments under load while an endpoint fails every fifth request and loses every tenth
answer: every committed change is delivered at least once, none is invented, the events of a document come in order,
their ids and bytes stay, and a function that uses one of the guide's recipes counts each exactly once.

    HEARTH_TEST_KILLS=200 HEARTH_TEST_RATINGS=10000 pytest endtoend/test_trigger_crash.py
"""

from __future__ import annotations

import http.client
import json
import os
import random
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.events import Endpoint, Event, Reply, Request, Served, definition, name_of, until, update, value
from support.patience import PATIENCE
from support.program import BINARY, assert_sound

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

KILLS = int(os.environ.get("HEARTH_TEST_KILLS", "4"))
WRITERS = 4
#: Documents of all writers, each of which is committed at least once.
RATINGS = int(os.environ.get("HEARTH_TEST_RATINGS", "24"))
#: How many of those whose last commit was answered are read again after a kill.
READ_AGAIN = 50
SECONDS_MAX = 1.0
SETTLE_SECONDS = 180.0 + RATINGS / 20


@dataclass
class Rating:
    """One document, which one writer writes. A value of None is its absence."""

    path: str
    #: The values of acknowledged commits, in order.
    committed: list[int | None] = field(default_factory=list)
    #: Of a commit that was requested and not answered.
    asked: list[int | None] = field(default_factory=list)

    @property
    def value(self) -> int | None:
        return self.committed[-1] if self.committed else None


class Writer(threading.Thread):
    """Commits one or several documents at a time until the server is gone. Values only grow."""

    def __init__(self, served: Served, ratings: list[Rating], numbers: Any, seed: str) -> None:
        super().__init__(daemon=True)
        self.served = served
        self.ratings = ratings
        self.numbers = numbers
        self.choice = random.Random(seed)
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            while True:
                self.commit()
        except (OSError, http.client.HTTPException):
            pass  # The server was killed.
        except BaseException as error:  # noqa: BLE001 - told to the test's thread
            self.fault = error

    def commit(self) -> None:
        self.write(self.choice.sample(self.ratings, self.choice.choice([1, 1, 1, 2, 4])))

    def write(self, ratings: list[Rating]) -> None:
        writes, changed = [], []
        for rating in ratings:
            value = None if rating.value is not None and self.choice.random() < 0.2 else next(self.numbers)
            rating.asked = [value]
            changed.append((rating, value))
            if value is None:
                writes.append({"delete": name_of(rating.path)})
            else:
                writes.append(update(rating.path, rating=value, more="x" * self.choice.randrange(500)))
        self.served.commit(*writes)
        for rating, value in changed:
            rating.committed.append(value)
            rating.asked = []


class Function:
    """The endpoint, which keeps sums at write time with a recipe of the guide: the function's ledger, or the id of the
    commit."""

    def __init__(self, served: Served, recipe: str) -> None:
        self.served = served
        self.recipe = recipe
        self.lock = threading.Lock()
        self.count = 0

    def __call__(self, request: Request) -> Reply | None:
        with self.lock:
            self.count += 1
            number = self.count
        # Some of the failures come before the effect, some after it.
        if number % 10 == 5:
            return Reply(500)
        try:
            is_done = self.apply(request.event)
        except (OSError, http.client.HTTPException):
            return Reply(500)
        if not is_done or number % 10 == 0:
            return Reply(503)
        return None if number % 10 == 7 else Reply(204)

    def apply(self, event: Event) -> bool:
        before = event.before and event.before["rating"]
        after = event.after and event.after["rating"]
        restaurant = name_of("/".join(event.document.split("/")[:2]))
        more = [
            {"fieldPath": "sum", "increment": {"integerValue": str((after or 0) - (before or 0))}},
            {"fieldPath": "count", "increment": {"integerValue": str((after is not None) - (before is not None))}},
        ]
        writes = [{"transform": {"document": restaurant, "fieldTransforms": more}}]
        path = "/v1/projects/demo-hearth/databases/(default)/documents:commit"
        if self.recipe == "id":
            return self.served.ask("POST", path, {"writes": writes}, **{"x-hearth-once": event.id})[0] == 200
        name = name_of(f"_once/{event.id}")
        writes.insert(0, {"update": {"name": name, "fields": {}}, "currentDocument": {"exists": False}})
        status, answer = self.served.ask("POST", path, {"writes": writes})
        # It is there: an earlier attempt was not lost, but its answer.
        return status == 200 or answer["error"]["status"] == "ALREADY_EXISTS"


def read(served: Served, path: str) -> dict[str, Any] | None:
    status, answer = served.ask("GET", f"/v1/{name_of(path)}")
    return Event({}, {"value": answer}).after if status == 200 else None


@pytest.mark.parametrize("recipe", ["ledger", "id"])
def test_killed_under_load(tmp_path: Path, recipe: str) -> None:
    seed = int(os.environ.get("HEARTH_TEST_SEED", str(random.randrange(10**6))))
    where = f"HEARTH_TEST_SEED={seed}"
    print(where)
    choice = random.Random(seed)
    ratings = [
        [Rating(f"restaurants/r{writer}/ratings/{number}") for number in range(RATINGS // WRITERS)]
        for writer in range(WRITERS)
    ]
    numbers = [iter(range(1, 1 << 40)) for _ in range(WRITERS)]
    runs: list[int] = []
    with Endpoint() as endpoint:
        retry = {"minBackoff": "10ms", "maxBackoff": "200ms"}
        trigger = definition(endpoint.url, "restaurants/{r}/ratings/{x}", retry=retry)
        with Served(tmp_path, {"t": trigger}) as served:
            endpoint.answer = Function(served, recipe)
            for kill in range(KILLS):
                writers = [
                    Writer(served, ratings[number], numbers[number], f"{seed} {kill} {number}")
                    for number in range(WRITERS)
                ]
                for writer in writers:
                    writer.start()
                # The moment is the test's subject: nothing is awaited.
                time.sleep(choice.random() * SECONDS_MAX)
                served.program.kill()
                for writer in writers:
                    writer.join(PATIENCE)
                    assert not writer.is_alive() and writer.fault is None, (where, writer.fault)
                assert_sound(tmp_path / "hearth-data")
                # What the killed server has sent is read to its end.
                until(lambda: endpoint.connections == 0)
                runs.append(len(endpoint.all()))
                served.start()
                resolve(served, ratings, choice, where)
            for number, of_one in enumerate(ratings):
                writer = Writer(served, of_one, numbers[number], f"{seed} rest {number}")
                rest = [rating for rating in of_one if not rating.committed]
                for start in range(0, len(rest), 4):
                    writer.write(rest[start : start + 4])
            served.settled("t", seconds=SETTLE_SECONDS)
            judge(endpoint.all(), runs, [rating for of_one in ratings for rating in of_one], where)
            for number, of_one in enumerate(ratings):
                values = [rating.value for rating in of_one if rating.value is not None]
                found = read(served, f"restaurants/r{number}") or {"sum": 0, "count": 0}
                assert found == {"sum": sum(values), "count": len(values)}, where
    committed = sum(len(rating.committed) for of_one in ratings for rating in of_one)
    print(f"{KILLS} kills, {committed} changes, {len(endpoint.all())} requests")


def resolve(served: Served, ratings: list[list[Rating]], choice: random.Random, where: str) -> None:
    """Adds what was committed and not answered; what was answered is there."""
    every = [rating for of_one in ratings for rating in of_one]
    answered = [rating for rating in every if not rating.asked]
    again = choice.sample(answered, min(READ_AGAIN, len(answered)))
    for rating in [rating for rating in every if rating.asked] + again:
        found = read(served, rating.path)
        value = found and found["rating"]
        if value != rating.value:
            assert rating.asked == [value], (where, rating, value)
            rating.committed.append(value)
        rating.asked = []


def judge(requests: list[Request], runs: list[int], ratings: list[Rating], where: str) -> None:
    ids: dict[tuple[str, str], Request] = {}
    by_document: dict[str, list[tuple[Event, int]]] = defaultdict(list)
    for index, request in enumerate(requests):
        event = request.event
        run = sum(index >= start for start in runs)
        by_document[event.document].append((event, run))
        first = ids.setdefault((event.document, event.id), request)
        same = [name for name in request.headers if name not in ("x-hearth-attempt", "host")]
        assert request.body == first.body, where
        assert all(request.headers[name] == first.headers.get(name) for name in same), where
    assert len({event_id for _, event_id in ids}) == len(ids), (where, "an id is that of two documents")
    assert set(by_document) <= {rating.path for rating in ratings}
    for rating in ratings:
        sent = by_document[rating.path]
        firsts: dict[str, Event] = {}
        for event, _ in sent:
            firsts.setdefault(event.id, event)
        values = [(e.before and e.before["rating"], e.after and e.after["rating"]) for e in firsts.values()]
        # Each change once, in order: what is there before is what was there after the one before it.
        assert values == list(zip([None, *rating.committed], rating.committed, strict=False)), (where, rating.path)
        # They sort by commit; in one run of the server none comes after a later one.
        assert list(firsts) == sorted(firsts), where
        for (event, run), (later, later_run) in zip(sent, sent[1:], strict=False):
            assert run != later_run or event.id <= later.id, (where, rating.path)


def sent(event_id: str, before: int | None, after: int | None) -> Request:
    states = {name: {"fields": {"rating": value(of)}} for name, of in (("oldValue", before), ("value", after)) if of}
    headers = {"content-type": "application/json", "ce-id": event_id, "ce-document": "a", "ce-type": "x"}
    return Request("/", {name: of.encode() for name, of in headers.items()}, json.dumps(states).encode(), 0)


def test_the_judge_finds_faults() -> None:
    ratings = [Rating("a", [1, 2, None, 3])]
    one, two, three, four = sent("1", None, 1), sent("2", 1, 2), sent("3", 2, None), sent("4", None, 3)
    judge([one, two, two, three, four], [], ratings, "")
    # Acknowledgements that were not kept when the server was killed.
    judge([one, two, three, two, three, four], [3], ratings, "")
    faults = {
        "lost": [one, two, four],
        "late": [one, three, two, four],
        "late again": [one, two, three, two, four],
        "invented": [one, two, three, four, sent("5", 3, 9)],
        "another id": [one, two, sent("22", 1, 2), three, four],
        "other bytes": [one, two, sent("2", 1, 5), three, four],
    }
    for fault, requests in faults.items():
        with pytest.raises(AssertionError):
            judge(requests, [], ratings, fault)


def test_what_waits_is_sent_after_each_of_many_kills(tmp_path: Path) -> None:
    """An endpoint that is down, kills while events wait: their number is exact after each start, nothing is lost."""
    with Endpoint() as endpoint:
        port = endpoint.port
    down = definition(f"http://127.0.0.1:{port}/", "a/{b}")
    with Served(tmp_path, {"t": down}) as served:
        for kill in range(max(3, KILLS)):
            served.put(f"a/{kill % 2}", n=kill)
            assert served.trigger("t")["pending"] == kill + 1
            served.restart()
            until(lambda kill=kill: served.trigger("t")["pending"] == kill + 1, lambda: served.trigger("t"))
        with Endpoint(port=port) as again:
            served.settled("t")
            assert sorted(event.after["n"] for event in again.events()) == list(range(max(3, KILLS)))
