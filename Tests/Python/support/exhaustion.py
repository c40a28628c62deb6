"""One client that tries to use up shared resources, and a bystander: `python -m support.exhaustion BINARY [ATTACK…]`.

Prints a row per attack: the bystander's latencies by kind of request (p50, p99 and worst), its failed requests, the
server's peak resident memory, its descriptors and its unnamed open files at the end, and the attacker's answers.
Attackers and bystander have no token and share an address: they differ in their connections only, which is the hardest
case for fairness.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support import attacks, servers, together
from support.attacks import CHANNEL, ROOT, Attacker, database, fill, send
from support.patience import PATIENCE

ATTACKS = attacks.ATTACKS | {"all that can be held, at once": together.everything}

SECONDS = 4.0
WAYS = ("read", "query", "commit", "begin", "database")
HEAD = (
    "| attack | reads | queries | commits | sessions and transactions | database | refused | peak MB | descriptors | files MB "
    "| the attacker's answers |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


SMALL = [{"name": f"{ROOT}/few/d{i}", "fields": {"n": {"integerValue": str(i)}, "m": {"integerValue": "1"}}} for i in range(10)]
SMALL_QUERY: dict[str, Any] = {
    "from": [{"collectionId": "few"}],
    "where": {"fieldFilter": {"field": {"fieldPath": "m"}, "op": "GREATER_THAN", "value": {"integerValue": "0"}}},
    "orderBy": [{"field": {"fieldPath": "n"}}, {"field": {"fieldPath": "m"}}],
}


class Bystander:
    """A client with small requests. A process of its own, so that its measurement is independent of an attacker's
    interpreter.
    """

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    def _ask(self, method: str, path: str, body: Any = None) -> int:
        try:
            self._connection.request(method, path, None if body is None else json.dumps(body).encode())
            answer = self._connection.getresponse()
            answer.read()
            return answer.status
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0

    def read(self) -> int:
        return self._ask("GET", f"/v1/{ROOT}/by/r")

    def query(self) -> int:
        """A query that no single range of an index answers, and a sum."""
        status = self._ask("POST", f"/v1/{ROOT}:runQuery", {"structuredQuery": SMALL_QUERY})
        if status != 200:
            return status
        sums = [{"alias": "a", "sum": {"field": {"fieldPath": "n"}}}]
        asked = {"structuredQuery": {"from": SMALL_QUERY["from"]}, "aggregations": sums}
        return self._ask("POST", f"/v1/{ROOT}:runAggregationQuery", {"structuredAggregationQuery": asked})

    def commit(self) -> int:
        write = {"update": {"name": f"{ROOT}/by/w", "fields": {"n": {"integerValue": "1"}}}}
        return self._ask("POST", f"/v1/{ROOT}:commit", {"writes": [write]})

    def begin(self) -> int:
        status = self._ask("POST", f"/v1/{ROOT}:beginTransaction", {})
        return status if status != 200 else self._ask("POST", CHANNEL + "&RID=1")

    def database(self) -> int:
        status = self._ask("PUT", database("by/w"), 1)
        return status if status != 200 else self._ask("GET", database("by/w"))


def watch(port: int, reports: Any, stop: Any) -> None:
    """The bystander's requests, one after another, until it is stopped; reports the duration and status of each."""
    bystander = Bystander(port)
    while not stop.is_set():
        for way in WAYS:
            began = time.monotonic()
            status = getattr(bystander, way)()
            reports.put((way, time.monotonic() - began, status))
        time.sleep(0.005)


@dataclass
class Row:
    attack: str
    waits: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    refused: int = 0
    megabytes: float = 0
    descriptors: int = 0
    file_megabytes: float = 0
    outcome: str = ""

    @property
    def longest(self) -> float:
        return max(max(times) for times in self.waits.values())

    def __str__(self) -> str:
        def figures(times: list[float]) -> str:
            ordered = sorted(times) or [0.0]
            at = [ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)], ordered[-1]]
            return " / ".join(f"{value * 1000:.1f}" for value in at)

        cells = [self.attack, *(figures(self.waits[way]) for way in WAYS), self.refused, f"{self.megabytes:.0f}"]
        return "| " + " | ".join(map(str, [*cells, self.descriptors, f"{self.file_megabytes:.0f}", self.outcome])) + " |"


def peak(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def nameless_megabytes(pid: int) -> float:
    """The disk space of open files without a name."""
    total = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found = os.stat(entry)
            total += found.st_blocks * 512 if found.st_nlink == 0 else 0
    return total / (1 << 20)


@contextmanager
def bystander(port: int, row: Row) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    reports, stop = context.Queue(), context.Event()
    process = context.Process(target=watch, args=(port, reports, stop), daemon=True)
    process.start()
    reports.get(timeout=PATIENCE)
    try:
        yield
    finally:
        stop.set()
        while process.is_alive() or not reports.empty():
            with suppress(Exception):
                way, took, status = reports.get(timeout=0.2)
                row.waits[way].append(took)
                row.refused += status != 200
        process.join()


def run(binary: str, attack: str) -> Row:
    """Runs one attack against a server of its own."""
    port = servers.free_port()
    row = Row(attack)
    # On disk: snapshots are a shared resource.
    command = [binary, "serve", "--host", "127.0.0.1", "--port", str(port), "--data", "hearth-data"]
    with servers.process(command, port) as server:
        fill(port, 500, 20_000)
        assert send(port, "PATCH", f"/v1/{ROOT}/by/r", {"fields": {"n": {"integerValue": "1"}}})[0] == 200
        writes = {"writes": [{"update": document} for document in SMALL]}
        assert send(port, "POST", f"/v1/{ROOT}:commit", writes)[0] == 200
        attacker = Attacker(port)
        with bystander(port, row):
            began = time.monotonic()
            ATTACKS[attack](attacker)
            time.sleep(max(0.5, SECONDS - (time.monotonic() - began)))
            row.descriptors = len(list(Path(f"/proc/{server.pid}/fd").iterdir())) - len(attacker.keep)
            row.file_megabytes = nameless_megabytes(server.pid)
        row.megabytes = peak(server.pid)
        row.outcome = ", ".join(f"{what}: {count:,}" for what, count in sorted(attacker.outcome.items()))
        attacker.close()
    return row


def main() -> None:
    print(HEAD, flush=True)
    for attack in sys.argv[2:] or ATTACKS:
        print(run(sys.argv[1], attack), flush=True)


if __name__ == "__main__":
    main()
