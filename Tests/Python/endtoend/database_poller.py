"""A page that speaks the Realtime Database's protocol by long polling."""

from __future__ import annotations

import base64
import http.client
import json
import re
import time
from typing import Any

from endtoend.database_wire import SECONDS_MAX
from support.patience import PATIENCE

CALL = re.compile(r'^parent\["(pLPCommand|pRTLPCB)7"\]&&parent\["\1\x37"\]\((.*)\);$')
PIECE_CHARACTERS_MAX = 1840


class Poller:
    """A page: it always has one waiting request, and sends messages in others."""

    def __init__(self, address: str, namespace: str, parameters: str = "") -> None:
        self.address = address
        self.namespace = namespace
        self.serial = 0
        self.segment = 0
        self.number = 0
        self.messages: list[dict[str, Any]] = []
        self.closed_after: int | None = None
        script = self.get(f"/.lp?start=t&ser=1&cb=7&v=5&ns={namespace}{parameters}")
        name, arguments = self.calls(script)[0]
        assert name == "pLPCommand" and arguments[0] == "start"
        self.id, self.password = arguments[1], arguments[2]
        self.take(script)
        self.handshake = self.messages.pop(0)

    # Requests.

    def get(self, target: str, status: int = 200, method: str = "GET") -> str:
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        try:
            connection.request(method, target)
            answer = connection.getresponse()
            body = answer.read().decode()
            assert answer.status == status, body
            if status == 200 and "dframe" not in target:
                assert answer.getheader("content-type", "").startswith("application/javascript")
            return body
        finally:
            connection.close()

    @property
    def who(self) -> str:
        return f"id={self.id}&pw={self.password}&ns={self.namespace}"

    def poll(self, data: str = "") -> None:
        self.serial += 1
        self.take(self.get(f"/.lp?{self.who}&ser={self.serial}{data}"))

    @staticmethod
    def calls(script: str) -> list[tuple[str, list[Any]]]:
        found = []
        for line in script.removesuffix("\n").split("\n"):
            match = CALL.match(line)
            assert match, line
            arguments = match[2]
            if "JSON.parse(" in arguments:
                number, text = arguments.split(",", 1)
                text = text.removeprefix("JSON.parse(").removesuffix(")")
                found.append((match[1], [int(number), json.loads(json.loads(text))]))
            else:
                found.append((match[1], json.loads(f"[{arguments}]")))
        return found

    def take(self, script: str) -> None:
        for name, arguments in self.calls(script):
            if name == "pRTLPCB":
                assert arguments[0] == self.number, "a client waits for the answer that it lacks"
                self.number += 1
                self.messages += arguments[1]
            elif arguments[0] == "close":
                self.closed_after = arguments[1]

    # The page's messages.

    def pieces(self, message: Any) -> list[str]:
        text = base64.urlsafe_b64encode(json.dumps(message, ensure_ascii=False).encode()).decode().replace("=", ".")
        parts = [text[start : start + PIECE_CHARACTERS_MAX] for start in range(0, len(text), PIECE_CHARACTERS_MAX)]
        written = []
        for part in parts:
            written.append(f"seg{{0}}={self.segment}&ts{{0}}={len(parts)}&d{{0}}={part}")
            self.segment += 1
        return written

    def say(self, *messages: Any) -> None:
        """In one request if they fit; the answer contains the waiting messages, perhaps much later."""
        pieces = [piece for message in messages for piece in self.pieces(message)]
        self.poll("".join("&" + piece.format(index) for index, piece in enumerate(pieces)))

    def ask(self, number: int, action: str, body: Any) -> Any:
        self.say({"t": "d", "d": {"r": number, "a": action, "b": body}})
        return self.answer(number)

    def answer(self, number: int) -> Any:
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            for message in self.messages:
                if message["t"] == "d" and message["d"].get("r") == number:
                    self.messages.remove(message)
                    return message["d"]["b"]
            assert time.monotonic() < deadline
            self.poll()

    def pushes(self) -> list[Any]:
        found = [message["d"] for message in self.messages if "a" in message.get("d", {})]
        self.messages = []
        return found
