"""Normalises an answer, so that two servers' answers are equal when they have the same meaning.

Times differ between servers, so each becomes a symbol that names its source: `W12` is the time at which request 12
wrote, `fresh` a read time not before the last commit. A time that violates a guarantee (a commit time that does not
ascend, an update time that no write returned) becomes a symbol of its own and so causes a difference. Values preserve
type and bits: `3` and `3.0`, `0.0` and `-0.0` differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .request import Json, Request, nanoseconds
from .transports import Answer

DAY_NANOSECONDS = 86_400 * 10**9


@dataclass
class Chronicle:
    """The times that one server has reported in this episode."""

    started: int
    made: dict[int, str] = field(default_factory=dict)
    stamps: dict[int, str] = field(default_factory=dict)
    newest: int = 0
    answers: dict[int, Json] = field(default_factory=dict)
    generated: dict[str, str] = field(default_factory=dict)


@dataclass
class Canonical:
    """A normalised answer; `message` is not part of the comparison."""

    code: str
    http: int | None
    shape: str
    body: Json
    message: str

    @property
    def key(self) -> Any:
        return (self.code, self.http, self.shape, self.body)


class Canonicaliser:
    """Normalises one answer; `Chronicle` carries the knowledge from answer to answer."""

    def __init__(self, chronicle: Chronicle, request: Request, sent: Json) -> None:
        self._known = chronicle
        self._request = request
        self._asked_time = _asked_time(sent)
        self._in_transaction = "transaction" in sent or "newTransaction" in sent
        self._before = chronicle.newest
        self._read_time: str | None = None

    def run(self, answer: Answer) -> Canonical:
        if answer.good:
            self._known.answers[self._request.index] = answer.body
            self._take_commit_times(answer.body)
        body = self._message(answer.body) if answer.good else None
        return Canonical(answer.code, answer.http, answer.shape, body, answer.message)

    # Times

    def _take_commit_times(self, body: Json) -> None:
        """Records the times of this request's commits before any symbol is used."""
        if not isinstance(body, dict):
            return
        times: list[str] = []
        if self._request.method == "Commit":
            # All changes of a commit have the commit's time; any other update time must be known already.
            times = [body.get("commitTime", "")]
        elif self._request.method == "BatchWrite":
            times = [result.get("updateTime", "") for result in body.get("writeResults", [])]
        elif self._request.method in ("CreateDocument", "UpdateDocument"):
            times = [body.get("updateTime", "")]
        for text in times:
            time = nanoseconds(text) if text else None
            if time is not None and time not in self._known.made:
                ascending = time > self._before
                self._known.made[time] = f"W{self._request.index}" + ("" if ascending else " (not after earlier ones)")
                if time % 1000:
                    self._known.made[time] += " (finer than a microsecond)"
                self._known.newest = max(self._known.newest, time)

    def _document_time(self, text: str) -> str:
        time = nanoseconds(text)
        if time is None:
            return f"no time: {text}"
        return self._known.made.get(time, "a time that no write gave")

    def _read(self, text: str) -> str:
        if text != (self._read_time or text):
            return "another read time in one answer"
        self._read_time = text
        time = nanoseconds(text)
        if time is None:
            return f"no time: {text}"
        if self._asked_time is not None:
            return "as asked" if time == nanoseconds(self._asked_time) else "not as asked"
        if self._in_transaction:
            # The answer's own snapshot may be older than the last commit, but not than the episode.
            return "of the transaction" if time >= min(self._known.made, default=0) else "before the episode"
        return "fresh" if time >= self._before else "stale"

    def _timestamp(self, text: str) -> Json:
        """A stored timestamp: a server's time becomes a symbol, a client's is unchanged."""
        time = nanoseconds(text)
        if time is None or abs(time - self._known.started) > DAY_NANOSECONDS:
            return ["timestamp", text]
        if time not in self._known.stamps:
            symbol = f"S{self._request.index}"
            if time % 10**6:
                symbol += " (finer than a millisecond)"
            if self._known.newest and time > self._known.newest:
                symbol += " (after the commit)"
            self._known.stamps[time] = symbol
        return ["server time", self._known.stamps[time]]

    # Messages and values

    def _message(self, node: Json) -> Json:
        if isinstance(node, list):
            return [self._message(member) for member in node]
        if not isinstance(node, dict):
            return node
        return {key: self._member(key, member) for key, member in node.items()}

    def _member(self, key: str, member: Json) -> Json:
        match key:
            case "fields" | "aggregateFields":
                return {name: self._value(value) for name, value in member.items()}
            case "transformResults" | "values":
                return [self._value(value) for value in member]
            case "createTime" | "updateTime" | "commitTime":
                return self._document_time(member)
            case "readTime":
                return self._read(member)
            case "status":
                # The status of a failed write in a batch; its message is compared as loosely as that of a failed call.
                return [{key: value for key, value in status.items() if key != "message"} for status in member]
            case "transaction" | "nextPageToken":
                return "present" if member else "empty"
            case "name":
                return self._name(member)
        return self._message(member)

    def _name(self, name: Json) -> Json:
        """A name that the server created becomes a symbol; the request that created it is the first to contain it."""
        if self._request.method == "CreateDocument" and not self._request.body.get("documentId"):
            last = name.rsplit("/", 1)[-1]
            good = len(last) == 20 and last.isascii() and last.isalnum()
            symbol = f"generated by {self._request.index}" if good else f"not 20 letters and digits: {last}"
            self._known.generated[name] = name.rsplit("/", 1)[0] + "/" + symbol
        return self._known.generated.get(name, name)

    def _value(self, value: Json) -> Json:
        if not isinstance(value, dict) or len(value) != 1:
            return ["not a value", value]
        ((kind, content),) = value.items()
        match kind:
            case "nullValue":
                return ["null"] if content is None else ["null", content]
            case "integerValue":
                return ["integer", content] if isinstance(content, str) else ["integer not as string", content]
            case "doubleValue":
                return ["double", _double(content)]
            case "timestampValue":
                return self._timestamp(content)
            case "mapValue":
                return ["map", {key: self._value(member) for key, member in content.get("fields", {}).items()}]
            case "arrayValue":
                return ["array", [self._value(member) for member in content.get("values", [])]]
            case "geoPointValue":
                return ["point", _double(content.get("latitude", 0)), _double(content.get("longitude", 0))]
        return [kind, content]


def _double(content: Json) -> str:
    return content if isinstance(content, str) else repr(float(content))


def _asked_time(sent: Json) -> str | None:
    time = sent.get("readTime")
    return time if isinstance(time, str) else None
