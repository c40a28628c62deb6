"""One server in a comparison of streams: a sequence's actions, and the normalised messages."""

from __future__ import annotations

import queue
import uuid
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import grpc

from support.calls import Calls
from support.model import Query, canonical, decode_fields, encode, fill_target
from support.streams import ListenRequest, Stream, WriteRequest
from support.wire import message_class

Message = tuple[Any, ...]

CHANGES = ("NO_CHANGE", "ADD", "REMOVE", "CURRENT", "RESET")
BOUNDARY = "boundary"


class Side:
    """One server: a sequence's actions, and the normalised messages."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.calls = Calls(address)
        self.project = f"demo-{uuid.uuid4().hex[:10]}"
        self.database = f"projects/{self.project}/databases/(default)"
        self.root = f"{self.database}/documents"
        self.times: list[int] = []
        self.listen = Stream(self.calls.channel, "Listen", self.database)
        self.write: Stream | None = None
        self.token = b""
        self.read_time = 0
        self.write_token = b""
        #: For each target with documents: path to content.
        self.state: dict[int, dict[str, Message]] = {}
        #: Targets of documents, which the emulator handles differently.
        self.document_targets: set[int] = set()
        #: Requests whose end of stream was reported.
        self.has_ended = False

    # Actions

    def commit(self, *, deletes: Sequence[str] = (), fields: dict[str, Any] | None = None, **numbers: int) -> None:
        """Sets `c/<name>` to `{n: number}`, or names with a path to the fields given."""
        request = message_class("CommitRequest")(database=self.database)
        for path, content in {**{f"c/{name}": {"n": n} for name, n in numbers.items()}, **(fields or {})}.items():
            made = request.writes.add()
            made.update.name = f"{self.root}/{path}"
            for key, value in content.items():
                encode(value, made.update.fields[key])
        for path in deletes:
            request.writes.add().delete = f"{self.root}/{path}"
        self.times.append(self.calls("Commit", request).commit_time.ToMicroseconds())

    def add(self, target: int, query: Query, **more: Any) -> None:
        request = ListenRequest(database=self.database)
        request.add_target.target_id = target
        fill_target(query, self.root, request.add_target)
        if query.documents:
            self.document_targets.add(target)
        expected = more.pop("expected_count", None)
        if expected is not None:
            request.add_target.expected_count.value = expected
        read_time = more.pop("read_time", None)
        if read_time is not None:
            request.add_target.read_time.FromMicroseconds(read_time)
        for name, value in more.items():
            setattr(request.add_target, name, value)
        self.listen.send(request)

    def remove(self, target: int) -> None:
        self.listen.send(ListenRequest(database=self.database, remove_target=target))

    def reopen(self, *kept: int) -> None:
        """Another stream; the client keeps its data of the named targets."""
        self.listen.cancel()
        self.listen = Stream(self.calls.channel, "Listen", self.database)
        self.state = {target: self.state[target] for target in kept}

    def begin_write(self, **more: Any) -> None:
        self.write = Stream(self.calls.channel, "Write", self.database)
        self.write.send(WriteRequest(**{"database": self.database, **more}))

    def send_writes(self, *writes: dict[str, Any], token: bytes | None = None) -> None:
        assert self.write is not None
        request = WriteRequest(stream_token=self.write_token if token is None else token)
        for write in writes:
            made = request.writes.add()
            if "delete" in write:
                made.delete = f"{self.root}/{write['delete']}"
            else:
                made.update.name = f"{self.root}/{write['set']}"
                made.update.fields["n"].integer_value = write.get("n", 0)
            if "exists" in write:
                made.current_document.exists = write["exists"]
            if "increment" in write:
                made.update_mask.SetInParent()
                made.update_transforms.add(field_path="n").increment.integer_value = write["increment"]
        self.write.send(request)

    def close(self) -> None:
        self.listen.cancel()
        if self.write is not None:
            self.write.cancel()
        self.calls.close()

    # Answers

    def poll(self) -> list[tuple[bool, Any]]:
        """The received events: whether from the Write stream, and a message or an end."""
        found: list[tuple[bool, Any]] = []
        for stream in (self.listen, self.write):
            while stream is not None:
                try:
                    message = stream.take(0)
                except queue.Empty:
                    break
                except grpc.RpcError as error:
                    message = ("ended", error.code().name)
                found.append((stream is self.write, ("ended", "OK") if message is None else message))
                if isinstance(found[-1][1], tuple):
                    break
        return found

    def normalise(self, came: Sequence[tuple[bool, Any]]) -> list[Message]:
        """The streams one after another: their relative order is not significant."""
        written = [one if isinstance(one, tuple) else self._written(one) for is_write, one in came if is_write]
        return [one if isinstance(one, tuple) else self._told(one) for is_write, one in came if not is_write] + written

    def _when(self, stamp: Any, covers: bool = False) -> str:
        """The commit of that time, or the last one up to it."""
        time_ = stamp.ToMicroseconds()
        place = bisect_right(self.times, time_)
        if not covers and (place == 0 or self.times[place - 1] != time_):
            return "unknown"
        return f"W{place}"

    def _document(self, document: Any) -> Message:
        times = self._when(document.create_time), self._when(document.update_time)
        return (canonical(decode_fields(document.fields)), *times)

    def _told(self, message: Any) -> Message:
        kind = message.WhichOneof("response_type")
        body = getattr(message, kind)
        match kind:
            case "target_change":
                change, ids = CHANGES[body.target_change_type], tuple(body.target_ids)
                if change == "NO_CHANGE" and not ids:
                    self.token, self.read_time = body.resume_token, body.read_time.ToMicroseconds()
                    return (BOUNDARY, self._when(body.read_time, covers=True), bool(body.resume_token))
                if change == "REMOVE":
                    return (change, ids, body.cause.code)
                if change == "CURRENT":
                    return (change, ids, bool(body.resume_token), body.HasField("read_time"))
                return (change, ids)
            case "document_change":
                path = body.document.name.removeprefix(self.root + "/")
                ids = tuple(sorted(body.target_ids)), tuple(sorted(body.removed_target_ids))
                return ("change", path, self._document(body.document), *ids)
            case "document_delete":
                path = body.document.removeprefix(self.root + "/")
                return ("delete", path, tuple(sorted(body.removed_target_ids)), body.HasField("read_time"))
            case "document_remove":
                path = body.document.removeprefix(self.root + "/")
                return ("remove", path, tuple(sorted(body.removed_target_ids)), body.HasField("read_time"))
            case _:
                return ("filter", body.target_id, body.count, body.HasField("unchanged_names"))

    def _written(self, message: Any) -> Message:
        self.write_token = message.stream_token
        if message.HasField("commit_time"):
            self.times.append(message.commit_time.ToMicroseconds())
        results = tuple(
            (
                self._when(result.update_time) if result.HasField("update_time") else None,
                tuple(str(value).strip() for value in result.transform_results),
            )
            for result in message.write_results
        )
        return (
            "written",
            bool(message.stream_id),
            bool(message.stream_token),
            results,
            message.HasField("commit_time"),
        )

    def exists(self, path: str) -> Message | None:
        """The document as it is now."""
        try:
            found = self.calls("GetDocument", message_class("GetDocumentRequest")(name=f"{self.root}/{path}"))
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return None
            raise
        return self._document(found)

    def take_in(self, messages: Sequence[Message]) -> None:
        """Processes messages as a client would."""
        for message in messages:
            match message:
                case ("RESET", ids):
                    for target in ids:
                        self.state[target] = {}
                case ("ADD", ids):
                    for target in ids:
                        self.state.setdefault(target, {})
                case ("REMOVE", ids, _):
                    for target in ids:
                        self.state.pop(target, None)
                case ("change", path, document, ids, removed):
                    for target in ids:
                        self.state[target][path] = document
                    for target in removed:
                        self.state[target].pop(path, None)
                case ("delete" | "remove", path, removed, _):
                    for target in removed:
                        self.state.get(target, {}).pop(path, None)
