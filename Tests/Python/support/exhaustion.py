"""One client that tries to use up what all share, beside a bystander: `python -m support.exhaustion BINARY [ATTACK…]`.

Prints a row an attack: the bystander's latencies (a small read and a small commit, in turn), what was refused to it, and
the server's resident memory at its highest. Attackers and bystander show no token and share an address: they differ in
their connections only, which is the hardest case for fairness.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support import servers

ROOT = "projects/abuse/databases/(default)/documents"
SECONDS = 4.0
FORM = b"application/x-www-form-urlencoded"


def send(port: int, method: str, path: str, body: Any = None, timeout: float = 30) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    connection.request(method, path, data, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    try:
        return answer.status, answer.read()
    finally:
        connection.close()


def opened(port: int, method: str, path: str, length: int) -> socket.socket:
    peer = socket.socket()
    # Little is taken off the server's hands.
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.settimeout(20)
    peer.connect(("127.0.0.1", port))
    head = f"{method} {path} HTTP/1.1\r\nHost: h\r\nContent-Type: {FORM.decode()}\r\nContent-Length: {length}\r\n\r\n"
    peer.sendall(head.encode())
    return peer


# MARK: The bystander


def watch(port: int, reports: Any, stop: Any) -> None:
    """A small read and a small commit in turn, until it is told to stop; reports what each took and its status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    write = {"writes": [{"update": {"name": f"{ROOT}/by/w", "fields": {"n": {"integerValue": "1"}}}}]}
    body = json.dumps(write).encode()
    while not stop.is_set():
        for way, method, path, data in (
            ("read", "GET", f"/v1/{ROOT}/by/r", None),
            ("commit", "POST", f"/v1/{ROOT}:commit", body),
        ):
            began = time.monotonic()
            try:
                connection.request(method, path, data)
                answer = connection.getresponse()
                answer.read()
                status = answer.status
            except (OSError, http.client.HTTPException):
                status = 0
                connection.close()
            reports.put((way, time.monotonic() - began, status))
        time.sleep(0.005)


@dataclass
class Row:
    attack: str
    reads: list[float] = field(default_factory=list)
    commits: list[float] = field(default_factory=list)
    refused: int = 0
    megabytes: float = 0

    def __str__(self) -> str:
        def figures(times: list[float]) -> str:
            ordered = sorted(times) or [0.0]
            at = [ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)], ordered[-1]]
            return " / ".join(f"{value * 1000:.1f}" for value in at)

        return f"| {self.attack} | {figures(self.reads)} | {figures(self.commits)} | {self.refused} | {self.megabytes:.0f} |"


HEAD = "| attack | reads: p50 / p99 / worst ms | commits: p50 / p99 / worst ms | refused | peak MB |\n|---|---|---|---|---|"


def peak(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


# MARK: Attacks


def fill(port: int, count: int, size: int) -> None:
    for start in range(0, count, 100):
        writes = [
            {
                "update": {
                    "name": f"{ROOT}/c/{number:05d}",
                    "fields": {
                        "a": {"integerValue": "1"},
                        "b": {"integerValue": str(-number)},
                        "t": {"stringValue": "x" * size},
                    },
                }
            }
            for number in range(start, min(count, start + 100))
        ]
        assert send(port, "POST", f"/v1/{ROOT}:commit", {"writes": writes})[0] == 200


def sorted_query(*, aggregated: bool) -> bytes:
    query: dict[str, Any] = {
        "from": [{"collectionId": "c"}],
        "where": {"fieldFilter": {"field": {"fieldPath": "a"}, "op": "EQUAL", "value": {"integerValue": "1"}}},
        "orderBy": [{"field": {"fieldPath": "b"}}],
    }
    if not aggregated:
        return json.dumps({"structuredQuery": query}).encode()
    sums = {"structuredQuery": query, "aggregations": [{"alias": "s", "sum": {"field": {"fieldPath": "b"}}}]}
    return json.dumps({"structuredAggregationQuery": sums}).encode()


def many(count: int, body: Callable[[int], None]) -> None:
    def run(number: int) -> None:
        with suppress(OSError, http.client.HTTPException):
            body(number)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS * 5)


def ask(port: int, path: str, body: bytes, keep: list[socket.socket]) -> None:
    peer = opened(port, "POST", path, len(body))
    peer.sendall(body)
    keep.append(peer)


def slow_sorted_readers(port: int, keep: list[socket.socket]) -> None:
    many(64, lambda _: ask(port, f"/v1/{ROOT}:runQuery", sorted_query(aggregated=False), keep))


def queued_aggregations(port: int, keep: list[socket.socket]) -> None:
    many(250, lambda _: ask(port, f"/v1/{ROOT}:runAggregationQuery", sorted_query(aggregated=True), keep))


CHANNEL = "/google.firestore.v1.Firestore/Write/channel?VER=8"


def handshake(port: int) -> str:
    status, body = send(port, "POST", CHANNEL + "&RID=1", b"count=0")
    assert status == 200, body
    return body.decode().split('["c","')[1].split('"')[0]


def early_messages(port: int, keep: list[socket.socket]) -> None:
    del keep
    body = b"count=1&ofs=5&req0___data__=" + b"x" * (20 << 20)

    def one(_: int) -> None:
        send(port, "POST", f"{CHANNEL}&RID=2&SID={handshake(port)}", body)

    many(40, one)


def large_forms(port: int, keep: list[socket.socket]) -> None:
    del keep
    session = handshake(port)
    for path in (f"{CHANNEL}&RID=2&SID={session}", f"{CHANNEL}&RID=1"):
        with suppress(OSError, http.client.HTTPException):
            send(port, "POST", path, b"a&" * (18 << 20))


def many_sessions(port: int, keep: list[socket.socket]) -> None:
    one = f"POST {CHANNEL}&RID=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\ncount=0".encode()

    def pipeline(_: int) -> None:
        peer = socket.create_connection(("127.0.0.1", port), timeout=30)
        keep.append(peer)
        for _ in range(60):
            peer.sendall(one * 100)
            received = 0
            while received < 100:
                received += peer.recv(1 << 20).count(b"HTTP/1.1 ") or 1

    many(4, pipeline)


def commits_of_nulls(port: int, keep: list[socket.socket]) -> None:
    del keep
    values = ",".join(['{"nullValue":null}'] * 500_000)
    name = f"{ROOT}/c/nulls"
    fields = f'{{"v":{{"arrayValue":{{"values":[{values}]}}}}}}'
    body = f'{{"writes":[{{"update":{{"name":"{name}","fields":{fields}}}}}]}}'.encode()
    many(12, lambda _: send(port, "POST", f"/v1/{ROOT}:commit", body) and None)


def unfinished_bodies(port: int, keep: list[socket.socket]) -> None:
    def one(_: int) -> None:
        peer = opened(port, "POST", f"/v1/{ROOT}:commit", 16 << 20)
        keep.append(peer)
        peer.sendall(b" " * (15 << 20))

    many(40, one)


ATTACKS: dict[str, Callable[[int, list[socket.socket]], None]] = {
    "nobody": lambda port, keep: None,
    "64 slow readers of a sorted query": slow_sorted_readers,
    "250 aggregations": queued_aggregations,
    "40 sessions with 20 MB ahead of their turn": early_messages,
    "forms of 36 MB": large_forms,
    "24,000 sessions": many_sessions,
    "12 commits of 500,000 nulls": commits_of_nulls,
    "40 unfinished bodies of 15 MB": unfinished_bodies,
}


@contextmanager
def bystander(port: int, row: Row) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    reports, stop = context.Queue(), context.Event()
    process = context.Process(target=watch, args=(port, reports, stop), daemon=True)
    process.start()
    first = reports.get(timeout=30)
    try:
        yield
    finally:
        stop.set()
        while process.is_alive() or not reports.empty():
            with suppress(Exception):
                first = reports.get(timeout=0.2)
                way, took, status = first
                (row.reads if way == "read" else row.commits).append(took)
                row.refused += status != 200
        process.join()


def run(binary: str, attack: str) -> Row:
    """Runs one attack against a server of its own."""
    port = servers.free_port()
    row = Row(attack)
    # On disk: snapshots are among what is shared.
    command = [binary, "serve", "--host", "127.0.0.1", "--port", str(port), "--data", "hearth-data"]
    with servers.process(command, port) as server:
        fill(port, 500, 20_000)
        assert send(port, "PATCH", f"/v1/{ROOT}/by/r", {"fields": {"n": {"integerValue": "1"}}})[0] == 200
        keep: list[socket.socket] = []
        with bystander(port, row):
            began = time.monotonic()
            ATTACKS[attack](port, keep)
            time.sleep(max(0.5, SECONDS - (time.monotonic() - began)))
        row.megabytes = peak(server.pid)
        for peer in keep:
            peer.close()
    return row


def main() -> None:
    print(HEAD, flush=True)
    for attack in sys.argv[2:] or ATTACKS:
        print(run(sys.argv[1], attack), flush=True)


if __name__ == "__main__":
    main()
