"""WebChannel sessions whose requests a test makes one by one, and may corrupt."""

from __future__ import annotations

import queue
import re
from contextlib import suppress
from typing import Any

from support.webchannel import FORM, Answer, Download, Frames, Session, Way


class Get:
    """A GET of the back channel, made by a test."""

    def __init__(self, download: Download) -> None:
        self.download = download
        self.status = download.status
        self.headers = download.headers
        self._pieces = download.pieces()
        self._reader = Frames()
        self._arrays: list[Any] = []

    def take(self, count: int) -> list[Any]:
        """The next arrays."""
        while len(self._arrays) < count:
            for frame in self._reader.feed(next(self._pieces)):
                self._arrays += frame
        taken, self._arrays = self._arrays[:count], self._arrays[count:]
        return taken

    def told(self, count: int) -> list[Any]:
        """The next arrays other than noops."""
        found: list[Any] = []
        while len(found) < count:
            found += without_noops(self.take(1))
        return found

    def rest(self) -> list[Any]:
        """All until the server ends it."""
        for piece in self._pieces:
            for frame in self._reader.feed(piece):
                self._arrays += frame
        self._reader.finish()
        return self._arrays

    def close(self) -> None:
        self.download.close()


class Bare(Session):
    """A session whose back channel is driven by the test, and whose requests may be corrupted."""

    def __init__(self, way: Way, project: str, method: str = "Listen", **options: Any) -> None:
        self.root = f"projects/{project}/databases/(default)"
        self.messages: queue.Queue[Any] = queue.Queue()
        super().__init__(way, method, self.root, self.messages.put, **options)
        self._gets: list[Get] = []

    def begin(self, *messages: dict[str, Any]) -> Bare:
        self.start(*messages, reads=False)
        return self

    def get(self, acknowledged: int | str, polls: bool = False, query: str = "") -> Get:
        target = re.sub(r"AID=[^&]*", f"AID={acknowledged}", self.get_target(polls=polls)) + query
        self._gets.append(Get(self.way.open(target)))
        return self._gets[-1]

    def post(self, body: bytes, number: int | str | None = None, **changes: str) -> Answer:
        """A POST whose body and query are as given."""
        number = self._take_number() if number is None else number
        target = f"{self.path}?{self.of_session()}&RID={number}&AID={self.last_id}&t=1"
        for name, value in changes.items():
            target = re.sub(rf"\b{name}=[^&]*", f"{name}={value}", target)
        return self.way.send("POST", target, body, {"Content-Type": FORM})

    def added(self, target: int, collection: str = "c", **more: Any) -> dict[str, Any]:
        query = {"parent": f"{self.root}/documents", "structuredQuery": {"from": [{"collectionId": collection}]}}
        return {"database": self.root, "addTarget": {"query": query, "targetId": target, **more}}

    def removed(self, target: int) -> dict[str, Any]:
        return {"database": self.root, "removeTarget": target}

    def written(self, token: str, **documents: str) -> dict[str, Any]:
        """A message of a Write stream."""
        root = f"{self.root}/documents/c/"
        writes = [
            {"update": {"name": root + name, "fields": {"s": {"stringValue": text}}}}
            for name, text in documents.items()
        ]
        return {"streamToken": token, "writes": writes}

    def leave(self) -> None:
        for get in self._gets:
            get.close()
        # The emulator doesn't answer it.
        with suppress(OSError):
            self.terminate()
        self.way.close()


def kinds(arrays: list[Any]) -> list[str]:
    """The content of arrays, in short: `ADD`, `CURRENT`, `boundary`, `documentChange`, `noop`, …"""
    found = []
    for _, (content,) in arrays:
        if isinstance(content, str):
            found.append(content)
            continue
        (kind,) = content
        change = content[kind].get("targetChangeType", "NO_CHANGE") if kind == "targetChange" else kind
        found.append("boundary" if change == "NO_CHANGE" else change)
    return found


def without_noops(arrays: list[Any]) -> list[Any]:
    return [array for array in arrays if array[1] != ["noop"]]
