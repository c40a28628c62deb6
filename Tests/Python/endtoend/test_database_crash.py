"""The server is killed at random moments while a Realtime Database is written. Acknowledged data exists after the
restart, and no update of several locations is stored partly.

Every worker thread does one kind of work over REST, with numbers that only grow:

- an *update* writes its number to five locations at different depths in one PATCH, and a sixth that every third one
  removes;
- a *set* replaces a subtree whose leaves all have its number, below a location that is deleted as a whole at times;
- an *increment* adds one to a counter, and two to another in the same PATCH, by server values;
- a *swap* changes a number by its ETag, as transactions do;
- a *push* appends to a list.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.patience import PATIENCE
from support.program import BINARY, EFFORT, Program, assert_sound

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

ROUNDS = 6 if EFFORT == 1 else 50 * max(1, EFFORT // 10)
WORKERS = {"update": 3, "set": 2, "increment": 2, "swap": 2, "push": 2}
PLACES = ["", "/a", "/a/b/c", "/deep/1/2/3/4/5", "/z"]
SECONDS_MAX = 1.0
NAMESPACE = "crash"


class Gone(Exception):
    """The server does not answer any more."""


class Connection:
    def __init__(self, port: int) -> None:
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, str]:
        """The status, the body and the ETag."""
        text = None if method == "GET" else json.dumps(body)
        try:
            self.http.request(
                method, f"{path}.json?ns={NAMESPACE}", text, {"Authorization": "Bearer owner", **(headers or {})}
            )
            answer = self.http.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Gone from error
        if answer.status == 503:
            raise Gone
        return answer.status, json.loads(content), answer.getheader("ETag") or ""

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        status, content, _ = self.send(method, path, body)
        assert status == 200, (status, content)
        return content


@dataclass
class Promises:
    """The acknowledged writes of all rounds, by worker: the last acknowledged and the last requested number."""

    acknowledged: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    #: The names that pushes received, with their numbers.
    pushed: dict[str, dict[str, int]] = field(default_factory=dict)
    writes: int = 0

    def __post_init__(self) -> None:
        self.lock = threading.Lock()

    def ask(self, worker: str) -> int:
        with self.lock:
            self.asked[worker] = self.asked.get(worker, 0) + 1
            return self.asked[worker]

    def acknowledge(self, worker: str, number: int) -> None:
        with self.lock:
            self.acknowledged[worker] = number
            self.writes += 1


class Load:
    """The threads of one round."""

    def __init__(self, port: int, promises: Promises, seed: int) -> None:
        self.port, self.promises, self.seed = port, promises, seed
        self.is_over = threading.Event()
        self.faults: list[BaseException] = []
        self.threads = [
            threading.Thread(target=self.work, args=(kind, f"{kind}{number}"), daemon=True)
            for kind, count in WORKERS.items()
            for number in range(count)
        ]
        for thread in self.threads:
            thread.start()

    def work(self, kind: str, worker: str) -> None:
        choice = random.Random(f"{self.seed} {worker}")
        try:
            connection = Connection(self.port)
            while not self.is_over.is_set():
                getattr(self, kind)(worker, connection, choice)
        except Gone:
            pass
        except BaseException as error:  # noqa: BLE001 - told to the test's thread
            self.faults.append(error)

    def end(self) -> bool:
        self.is_over.set()
        for thread in self.threads:
            thread.join(PATIENCE)
        return not any(thread.is_alive() for thread in self.threads)

    def update(self, worker: str, connection: Connection, choice: random.Random) -> None:
        number = self.promises.ask(worker)
        values: dict[str, Any] = {f"{worker}/p{index}{place}": number for index, place in enumerate(PLACES)}
        values[f"{worker}/odd"] = None if number % 3 == 0 else {"n": number, "text": "x" * choice.randrange(3000)}
        connection.ok("PATCH", "/updates", values)
        self.promises.acknowledge(worker, number)

    def set(self, worker: str, connection: Connection, choice: random.Random) -> None:
        number = self.promises.ask(worker)
        if number % 5 == 0:
            connection.ok("DELETE", f"/sets/{worker}")
        else:
            tree = {f"k{index}": {"n": number, "list": [number] * choice.randrange(1, 9)} for index in range(20)}
            connection.ok("PUT", f"/sets/{worker}/tree", tree)
        self.promises.acknowledge(worker, number)

    def increment(self, worker: str, connection: Connection, choice: random.Random) -> None:
        number = self.promises.ask(worker)
        changes = {f"{name}/{worker}": {".sv": {"increment": by}} for name, by in (("ones", 1), ("twos", 2))}
        connection.ok("PATCH", "/counters", changes)
        self.promises.acknowledge(worker, number)

    def swap(self, worker: str, connection: Connection, choice: random.Random) -> None:
        number = self.promises.ask(worker)
        _, old, tag = connection.send("GET", f"/swaps/{worker}", headers={"X-Firebase-ETag": "true"})
        status, content, _ = connection.send("PUT", f"/swaps/{worker}", (old or 0) + 1, {"if-match": tag})
        assert status == 200, (status, content)
        self.promises.acknowledge(worker, number)

    def push(self, worker: str, connection: Connection, choice: random.Random) -> None:
        number = self.promises.ask(worker)
        name = connection.ok("POST", f"/pushes/{worker}", {"n": number})["name"]
        with self.promises.lock:
            self.promises.pushed.setdefault(worker, {})[name] = number
        self.promises.acknowledge(worker, number)


def leaves(node: Any) -> list[Any]:
    if isinstance(node, dict):
        return [leaf for child in node.values() for leaf in leaves(child)]
    if isinstance(node, list):
        return [leaf for child in node for leaf in leaves(child)]
    return [] if node is None else [node]


def broken_promises(connection: Connection, promises: Promises) -> list[str]:
    """The violated invariants, in words."""
    broken: list[str] = []
    root = connection.ok("GET", "/") or {}

    def bounded(worker: str, found: int) -> None:
        low, high = promises.acknowledged.get(worker, 0), promises.asked.get(worker, 0)
        if not low <= found <= high:
            broken.append(f"{worker} is at {found}; {low} was acknowledged, {high} asked for")

    for number in range(WORKERS["update"]):
        worker = f"update{number}"
        found = root.get("updates", {}).get(worker, {})
        numbers = set(leaves({name: node for name, node in found.items() if name != "odd"}))
        if not numbers and not promises.acknowledged.get(worker):
            continue
        if len(numbers) != 1:
            broken.append(f"an update of {worker} is there in part: {sorted(numbers)}")
            continue
        (last,) = numbers
        bounded(worker, last)
        if found.get("odd", {}).get("n") != (None if last % 3 == 0 else last):
            broken.append(f"the sixth place of {worker} is {found.get('odd')}, the others are at {last}")
    for number in range(WORKERS["set"]):
        worker = f"set{number}"
        numbers = set(leaves(root.get("sets", {}).get(worker)))
        if len(numbers) > 1:
            broken.append(f"a set of {worker} is there in part: {sorted(numbers)}")
        elif numbers:
            bounded(worker, numbers.pop())
        elif not any(
            n % 5 == 0
            for n in range(promises.acknowledged.get(worker, 0), promises.asked.get(worker, 0) + 1)
        ):
            broken.append(f"{worker} is empty at {promises.acknowledged.get(worker, 0)}")
    for number in range(WORKERS["increment"]):
        worker = f"increment{number}"
        ones, twos = (root.get("counters", {}).get(name, {}).get(worker, 0) for name in ("ones", "twos"))
        bounded(worker, ones)
        if twos != 2 * ones:
            broken.append(f"{worker} has added one {ones} times, and two to {twos}")
    for number in range(WORKERS["swap"]):
        # At the end of every round the answer to one write is lost.
        found = root.get("swaps", {}).get(f"swap{number}", 0)
        bounded(f"swap{number}", found)
    for number in range(WORKERS["push"]):
        worker = f"push{number}"
        found = {name: node["n"] for name, node in root.get("pushes", {}).get(worker, {}).items()}
        missing = [name for name, n in promises.pushed.get(worker, {}).items() if found.get(name) != n]
        if missing:
            broken.append(f"{len(missing)} pushes of {worker} are missing: {missing[:3]}")
        if sorted(found) != [name for name, _ in sorted(found.items(), key=lambda item: item[1])]:
            broken.append(f"the pushes of {worker} are out of order")
    return broken


def settle(connection: Connection, promises: Promises) -> None:
    """Requested and unacknowledged writes may or may not have happened: the present numbers are the new base."""
    root = connection.ok("GET", "/") or {}
    for number in range(WORKERS["update"]):
        worker = f"update{number}"
        promises.acknowledged[worker] = root.get("updates", {}).get(worker, {}).get("p0", 0)
    for number in range(WORKERS["increment"]):
        worker = f"increment{number}"
        promises.asked[worker] = promises.acknowledged[worker] = root.get("counters", {}).get("ones", {}).get(worker, 0)
    for number in range(WORKERS["swap"]):
        worker = f"swap{number}"
        promises.asked[worker] = promises.acknowledged[worker] = root.get("swaps", {}).get(worker, 0)


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    choice = random.Random(seed)
    promises = Promises()
    for number in range(ROUNDS):
        server = Program(tmp_path, "--data", "data")
        load = Load(server.port, promises, seed + number)
        time.sleep(choice.uniform(0.05, SECONDS_MAX))
        server.kill()
        assert load.end(), "a client hangs"
        assert not load.faults, load.faults
        assert_sound(tmp_path / "data")
        server = Program(tmp_path, "--data", "data")
        connection = Connection(server.port)
        broken = broken_promises(connection, promises)
        assert not broken, f"round {number}, seed {seed}: " + "; ".join(broken)
        settle(connection, promises)
        server.kill()
    print(f"{ROUNDS} kills, {promises.writes} acknowledged writes")
    assert promises.writes > 20 * ROUNDS
