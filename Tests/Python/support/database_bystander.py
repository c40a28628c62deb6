"""A client of the Realtime Database with small requests, which reports its waiting times: `python -m
support.database_bystander PORT NAMESPACE`.

It is a process of its own, so that its measurement is independent of an attacker's busy interpreter. It is anonymous,
at the attacker's own address. Each line of its output: when a request began and how long it took, in seconds of the
monotonic clock, and the connection. A request that fails ends the process with its error.
"""

from __future__ import annotations

import http.client
import json
import re
import sys
import time
from collections.abc import Callable
from typing import Any

from websockets.sync.client import connect

from support.patience import PATIENCE

PAUSE_SECONDS = 0.01


def main(port: int, namespace: str) -> None:
    def connection() -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    def ask(on: http.client.HTTPConnection, method: str, target: str, body: Any = None) -> bytes:
        on.request(method, target, None if body is None else json.dumps(body))
        answer = on.getresponse()
        content = answer.read()
        assert answer.status == 200, (method, target, answer.status, content)
        return content

    kept = connection()
    small = f"/open/small.json?ns={namespace}"

    def rest() -> None:
        ask(kept, "PUT", small, {"n": 1})
        assert json.loads(ask(kept, "GET", small)) == {"n": 1}

    def poll() -> None:
        made = connection()
        script = ask(made, "GET", f"/.lp?start=t&ser=1&cb=7&v=5&ns={namespace}").decode()
        found = re.search(r'"start","([0-9a-f]+)","([0-9a-f]+)"', script)
        assert found, script
        made.close()

    def open_socket() -> Any:
        made = connect(f"ws://127.0.0.1:{port}/.ws?v=5&ns={namespace}", open_timeout=PATIENCE)
        made.recv(timeout=PATIENCE)
        return made

    socket = open_socket()
    numbers = iter(range(1, 1 << 40))

    def put(on: Any) -> None:
        number = next(numbers)
        on.send(json.dumps({"t": "d", "d": {"r": number, "a": "p", "b": {"p": "open/socket", "d": number}}}))
        answer = json.loads(on.recv(timeout=PATIENCE))
        assert answer["d"] == {"r": number, "b": {"s": "ok", "d": ""}}, answer

    def anew() -> None:
        made = open_socket()
        put(made)
        made.close()

    ways: list[tuple[str, Callable[[], None]]] = [
        ("REST", rest), ("a socket", lambda: put(socket)), ("a new socket", anew), ("a new polling session", poll),
    ]
    while True:
        for way, send in ways:
            began = time.monotonic()
            send()
            print(began, time.monotonic() - began, way, flush=True)
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
