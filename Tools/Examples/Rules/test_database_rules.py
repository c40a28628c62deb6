"""What database.rules.json allows and denies, asked of a server that is started here: `hearth serve --memory`.

A server for local development believes who a token says that its user is, so that a test can be anybody.
FIREBASE_DATABASE_EMULATOR_HOST names another server than 127.0.0.1:8080.
"""

from __future__ import annotations

import base64
import json
import os
import unittest
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

SERVER = os.environ.get("FIREBASE_DATABASE_EMULATOR_HOST", "127.0.0.1:8080")
#: A database of the tests' own.
NAMESPACE = "rules-test"


def token(user: str) -> str:
    """An unsigned token of a user."""
    parts = ({"alg": "none", "typ": "JWT"}, {"sub": user, "user_id": user})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join(encoded) + "."


def status(method: str, path: str, value: Any = None, user: str | None = None) -> int:
    """The status of a request over REST: 200 when the rules allow it, 401 when they don't."""
    query = {"ns": NAMESPACE} | ({"auth": token(user)} if user else {})
    url = f"http://{SERVER}/{path}.json?{urllib.parse.urlencode(query)}"
    body = None if value is None else json.dumps(value).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, method=method), timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        refused.close()
        return refused.code


class Looking(unittest.TestCase):
    """Each user says which list they look at."""

    NOW = {".sv": "timestamp"}

    def test_users_come_and_go(self) -> None:
        self.assertEqual(status("PUT", "looking/home/eva", self.NOW, "eva"), 200)
        self.assertEqual(status("DELETE", "looking/home/eva", user="eva"), 200)

    def test_nobody_comes_for_another(self) -> None:
        self.assertEqual(status("PUT", "looking/home/eva", self.NOW, "adam"), 401)
        self.assertEqual(status("PUT", "looking/home/eva", self.NOW), 401)

    def test_the_time_is_none_of_the_future(self) -> None:
        self.assertEqual(status("PUT", "looking/home/eva", 4_102_444_800_000, "eva"), 401)
        self.assertEqual(status("PUT", "looking/home/eva", "today", "eva"), 401)

    def test_users_see_who_looks(self) -> None:
        self.assertEqual(status("GET", "looking/home", user="adam"), 200)
        self.assertEqual(status("GET", "looking/home"), 401)
        self.assertEqual(status("GET", "looking", user="adam"), 401)


if __name__ == "__main__":
    unittest.main()
