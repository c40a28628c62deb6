"""The Realtime Database from its SDKs' point of view: messages over a WebSocket, events over HTTP, requests over
REST.
"""

from __future__ import annotations

import http.client
import json
import time
from types import TracebackType
from typing import Any
from urllib.parse import quote

from websockets.sync.client import connect

from support.patience import PATIENCE

PIECE_UNITS_MAX = 16384
SECONDS_MAX = PATIENCE


def token(uid: str, **claims: Any) -> str:
    """An unsigned ID token, as SDKs send it to an emulator."""
    import base64

    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    now = int(time.time())
    body = {"sub": uid, "user_id": uid, "iat": now, "exp": now + 3600, **claims}
    return f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(body)}."


class Wire:
    """One socket. Pushes that arrive before an answer are stored in `pushes`."""

    def __init__(self, address: str, namespace: str, *, parameters: str = "", **options: Any) -> None:
        self.address = address
        self.socket = connect(
            f"ws://{address}/.ws?v=5&ns={namespace}{parameters}", max_size=None, open_timeout=SECONDS_MAX, close_timeout=1,
            **options
        )
        self.number = 0
        self.pushes: list[dict[str, Any]] = []
        self.answers: dict[int, dict[str, Any]] = {}
        self.handshake = self.next()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    # Messages.

    def next(self, seconds: float = SECONDS_MAX) -> dict[str, Any]:
        """The next message, its pieces joined."""
        text = self._frame(seconds)
        if text.isdigit():
            assert int(text) > 0, "a number that is no count wedges the web client"
            pieces = [self._frame(seconds) for _ in range(int(text))]
            assert all(len(piece.encode("utf-16-le")) // 2 <= PIECE_UNITS_MAX for piece in pieces)
            text = "".join(pieces)
        return json.loads(text)

    def _frame(self, seconds: float) -> str:
        frame = self.socket.recv(timeout=seconds)
        assert isinstance(frame, str)
        assert len(frame.encode("utf-16-le")) // 2 <= PIECE_UNITS_MAX
        return frame

    def quiet(self, seconds: float = 0.3) -> bool:
        """Whether no message arrives."""
        if self.pushes:
            return False
        try:
            self.pushes.append(self.next(seconds))
        except TimeoutError:
            return True
        return False

    def send(self, message: Any) -> None:
        text = json.dumps(message, ensure_ascii=False)
        units = len(text.encode("utf-16-le")) // 2
        if units <= PIECE_UNITS_MAX:
            self.socket.send(text)
            return
        # Half of the units: no character is split.
        size = PIECE_UNITS_MAX // 2
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        self.socket.send(str(len(pieces)))
        for piece in pieces:
            self.socket.send(piece)

    def begin(self, action: str, body: Any) -> int:
        self.number += 1
        self.send({"t": "d", "d": {"r": self.number, "a": action, "b": body}})
        return self.number

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to a request; earlier messages are stored."""
        while number not in self.answers:
            message = self.next()
            assert message["t"] == "d", message
            if "r" in message["d"]:
                self.answers[message["d"]["r"]] = message["d"]["b"]
            else:
                self.pushes.append(message["d"])
        return self.answers.pop(number)

    def call(self, action: str, body: Any) -> dict[str, Any]:
        return self.answer(self.begin(action, body))

    def ok(self, action: str, body: Any) -> Any:
        answer = self.call(action, body)
        assert answer["s"] == "ok", answer
        return answer["d"]

    def push(self) -> dict[str, Any]:
        """The next push."""
        if self.pushes:
            return self.pushes.pop(0)
        while True:
            message = self.next()
            assert message["t"] == "d", message
            if "a" in message["d"]:
                return message["d"]
            self.answers[message["d"]["r"]] = message["d"]["b"]

    def taken(self) -> list[tuple[Any, ...]]:
        """The received pushes: action, path, data and, if there is one, the tag."""
        taken = [
            (push["a"], push["b"].get("p"), push["b"].get("d"), *([push["b"]["t"]] if "t" in push["b"] else []))
            for push in self.pushes
        ]
        self.pushes = []
        return taken

    def wait(self) -> list[tuple[Any, ...]]:
        """The pushes up to now. Requests through the journal are answered after all earlier commits are delivered."""
        self.ok("oc", {"p": "nothing", "d": None})
        return self.taken()


class Events:
    """A stream of server-sent events."""

    def __init__(self, address: str, namespace: str, path: str, query: str = "", headers: dict[str, str] | None = None) -> None:
        host, port = address.rsplit(":", 1)
        self.connection = http.client.HTTPConnection(host, int(port), timeout=SECONDS_MAX)
        self.connection.request(
            "GET",
            f"/{quote(path)}.json?ns={namespace}{query}",
            headers={"Accept": "text/event-stream", **(headers or {})},
        )
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.headers = {name.lower(): value for name, value in self.response.getheaders()}

    def __enter__(self) -> Events:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    def next(self) -> tuple[str, Any]:
        """Name and data of the next event; `("", None)` at the end."""
        name = self.response.readline()
        if not name:
            return "", None
        data = self.response.readline()
        end = self.response.readline()
        assert name.startswith(b"event: ") and data.startswith(b"data: ") and end == b"\n", (name, data, end)
        return name[7:-1].decode(), json.loads(data[6:])


class Tree:
    """A namespace over REST."""

    def __init__(self, address: str, namespace: str) -> None:
        self.address = address
        self.namespace = namespace
        host, port = address.rsplit(":", 1)
        self.connection = http.client.HTTPConnection(host, int(port), timeout=SECONDS_MAX)

    def close(self) -> None:
        self.connection.close()

    def send(self, method: str, path: str, body: Any = None, query: str = "", auth: str | None = "Bearer owner") -> tuple[int, Any]:
        headers = {"Authorization": auth} if auth else {}
        content = None if method in ("GET", "DELETE") else json.dumps(body)
        self.connection.request(method, f"/{quote(path)}.json?ns={self.namespace}{query}", content, headers)
        response = self.connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text else None

    def get(self, path: str, query: str = "") -> Any:
        status, value = self.send("GET", path, query=query)
        assert status == 200, value
        return value

    def put(self, path: str, value: Any) -> None:
        status, answer = self.send("PUT", path, value)
        assert status == 200, answer

    def patch(self, path: str, value: Any) -> None:
        status, answer = self.send("PATCH", path, value)
        assert status == 200, answer

    def delete(self, path: str) -> None:
        status, answer = self.send("DELETE", path)
        assert status == 200, answer

    def rules(self, rules: Any) -> None:
        status, answer = self.send("PUT", ".settings/rules", {"rules": rules})
        assert status == 200, answer
