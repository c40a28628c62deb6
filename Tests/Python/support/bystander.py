"""A client that only reads its document, and reports its waiting times: `python -m support.bystander PORT NAME`.

It is a process of its own, so that its measurement is independent of an attacker's busy interpreter. It has connections
on each of the server's loops, because a delay of a loop affects only its own; it opens a new one in each round, too.
Each line of its output: when a request began and how long it took, in seconds of the monotonic clock, and the
connection. A request that fails ends the process with its error.
"""

from __future__ import annotations

import http.client
import sys
import time
from collections.abc import Callable

import grpc

from support.patience import PATIENCE
from support.wire import METHODS, parse

KEPT_CONNECTIONS = 4
PAUSE_SECONDS = 0.01


def rest(connection: http.client.HTTPConnection, name: str) -> None:
    connection.request("GET", f"/v1/{name}", headers={"Authorization": "Bearer owner"})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status == 200, content


def main(port: int, name: str) -> None:
    def connect() -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    def anew() -> None:
        connection = connect()
        rest(connection, name)
        connection.close()

    kept = [connect() for _ in range(KEPT_CONNECTIONS)]
    method = METHODS["GetDocument"]
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    get = channel.unary_unary(method.path, method.request.SerializeToString, method.response.FromString)
    message = parse(method, {"name": name})
    ways: list[tuple[str, Callable[[], None]]] = [("a new connection", anew)]
    ways += [(f"HTTP/1.1 {n}", lambda c=c: rest(c, name)) for n, c in enumerate(kept)]
    ways.append(("gRPC", lambda: get(message, timeout=PATIENCE, metadata=[("authorization", "Bearer owner")])))
    while True:
        for way, send in ways:
            began = time.monotonic()
            send()
            print(began, time.monotonic() - began, way, flush=True)
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
