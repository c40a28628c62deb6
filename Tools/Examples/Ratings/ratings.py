#!/usr/bin/env python3
"""Keeps the number, the sum and the average of a restaurant's ratings in the restaurant's document.

The trigger of hearth.json calls this program over HTTP for each rating that is made, changed or deleted. An event may
come more than once: each counts once, because its id is noted in the transaction that changes the figures. Nothing but
Python's standard library is needed.

Usage: ratings.py [PORT]        (default 8081; FIRESTORE_EMULATOR_HOST names the server, default 127.0.0.1:8080)
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SERVER = os.environ.get("FIRESTORE_EMULATOR_HOST", "127.0.0.1:8080")
#: How often a transaction is tried when others change the same documents.
ATTEMPTS_MAX = 10

Json = dict[str, Any]


class Refused(Exception):
    """The server's answer to a request that it refused: `status` is a name such as ABORTED."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


def call(path: str, body: Json | None = None) -> Json:
    """Asks Firestore's REST API: GET without a body, else POST."""
    request = urllib.request.Request(
        f"http://{SERVER}/v1/{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": "Bearer owner", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        refusal = json.load(error)["error"]
        raise Refused(refusal["status"], refusal["message"]) from error


def number(document: Json | None, field: str) -> float | int | None:
    """A field of a document in REST's form; None without the document, the field, or a number in it."""
    value = (document or {}).get("fields", {}).get(field, {})
    if "integerValue" in value:
        return int(value["integerValue"])
    return value.get("doubleValue")


def value(of: float | int | None) -> Json:
    """The REST form of a number or null."""
    if of is None:
        return {"nullValue": None}
    return {"integerValue": str(of)} if isinstance(of, int) else {"doubleValue": of}


def count(event: Json) -> None:
    """Counts a change of a rating in, unless its event was counted before."""
    before, after = event["data"].get("oldValue"), event["data"].get("value")
    name = (after or before)["name"]  # projects/P/databases/D/documents/restaurants/R/ratings/U
    root = name.partition("/documents/")[0] + "/documents"
    restaurant = name.rsplit("/", 2)[0]
    old, new = number(before, "stars"), number(after, "stars")

    transaction = call(f"{root}:beginTransaction", {})["transaction"]
    found = call(f"{root}:batchGet", {"documents": [restaurant], "transaction": transaction})[0].get("found")
    ratings = (number(found, "ratings") or 0) + (new is not None) - (old is not None)
    stars = (number(found, "stars") or 0) + (new or 0) - (old or 0)
    kept = {"ratings": ratings, "stars": stars, "average": stars / ratings if ratings else None}
    # Creating the note fails when it is there: then nothing of the transaction is done.
    note = {"update": {"name": f"{root}/_once/{event['id']}"}, "currentDocument": {"exists": False}}
    figures = {
        "update": {"name": restaurant, "fields": {field: value(figure) for field, figure in kept.items()}},
        "updateMask": {"fieldPaths": list(kept)},
    }
    call(f"{root}:commit", {"transaction": transaction, "writes": [note, figures]})


def count_once(event: Json) -> None:
    """`count`, again when others were faster; a repeated event is no error."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            return count(event)
        except Refused as refused:
            if refused.status == "ALREADY_EXISTS":
                return None
            if refused.status != "ABORTED" or attempt == ATTEMPTS_MAX:
                raise


class Handler(BaseHTTPRequestHandler):
    """Takes one event a request. An answer other than 2xx has the server send it again later."""

    def do_POST(self) -> None:
        event = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            count_once(event)
            status, body = 200, b""
        except Exception as error:  # Any failure: the event must come again.
            status, body = 500, f"{type(error).__name__}: {error}".encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8081
    print(f"Counting for {SERVER}, called at http://127.0.0.1:{port}/", flush=True)
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
