"""Sends requests to one server, over gRPC or REST, and returns answers in one form.

`start` and `finish` are separate, so that both servers process a request at the same time.
"""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import json_format

from support.wire import METHODS, Method, parse

from .request import Json
from .rest import http_request

ANSWER_SECONDS_MAX = 15.0
#: The administrator's token.
OWNER = "owner"
HEADERS = {"Authorization": "Bearer owner", "Content-Type": "application/json"}
_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # Error messages repeat names of several kilobytes; above its default of 8 KiB the client drops answers at random.
    ("grpc.max_metadata_size", 262_144),
    ("grpc.absolute_max_metadata_size", 524_288),
)


@dataclass(frozen=True)
class Answer:
    """A server's answer: a status and a body in JSON form (a list for streaming methods)."""

    code: str
    message: str = ""
    body: Json = None
    # REST only: the HTTP status, and whether an error came as object, as array or as something else.
    http: int | None = None
    shape: str = ""

    @property
    def good(self) -> bool:
        return self.code == "OK"


class Unsendable(Exception):
    """The body is not a valid message of this method, so that gRPC cannot carry it."""


class GrpcTransport:
    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address, options=_OPTIONS)
        self._stubs = {method.name: self._stub(method) for method in METHODS.values()}

    def _stub(self, method: Method) -> Any:
        make = self._channel.unary_stream if method.streams else self._channel.unary_unary
        return make(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )

    def start(self, name: str, body: Json, token: str | None = OWNER) -> Any:
        """Without a token the client is anonymous."""
        method = METHODS[name]
        metadata = [] if token is None else [("authorization", f"Bearer {token}")]
        try:
            message = parse(method, body)
        except (json_format.ParseError, ValueError, TypeError) as error:
            raise Unsendable(str(error)) from error
        stub = self._stubs[name]
        call = stub if method.streams else stub.future
        return method, call(message, timeout=ANSWER_SECONDS_MAX, metadata=metadata)

    def finish(self, pending: Any) -> Answer:
        method, call = pending
        try:
            if method.streams:
                return Answer("OK", body=[_to_json(message) for message in call])
            return Answer("OK", body=_to_json(call.result()))
        except grpc.RpcError as error:
            code = error.code().name
            if code == "DEADLINE_EXCEEDED":
                # The tester's timeout, not the server's: no request here takes that long.
                return Answer("NO_ANSWER")
            return Answer(code, error.details() or "")

    def close(self) -> None:
        self._channel.close()


def _to_json(message: Any) -> Json:
    return json_format.MessageToDict(message)


class RestTransport:
    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self._connection = http.client.HTTPConnection(host, int(port), timeout=ANSWER_SECONDS_MAX)

    def start(self, name: str, body: Json, token: str | None = OWNER) -> Any:
        verb, target, content = http_request(name, body)
        payload = None if content is None else json.dumps(content).encode()
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        try:
            self._connection.request(verb, target, payload, headers)
        except (OSError, http.client.HTTPException):
            # A server may close an idle connection at any time; nothing of this request has arrived.
            self._connection.close()
            self._connection.request(verb, target, payload, headers)
        return METHODS[name]

    def finish(self, pending: Any) -> Answer:
        try:
            response = self._connection.getresponse()
            content = response.read()
        except TimeoutError:
            self._connection.close()
            return Answer("NO_ANSWER")
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return Answer("BROKEN_CONNECTION", repr(error))
        return read_http_answer(response.status, content, pending.streams)

    def clear(self, database: str) -> None:
        """Deletes all documents of a database."""
        self._connection.request("DELETE", f"/emulator/v1/{database}/documents", headers=HEADERS)
        self._connection.getresponse().read()

    def close(self) -> None:
        self._connection.close()


def read_http_answer(status: int, content: bytes, streams: bool) -> Answer:
    try:
        parsed = json.loads(content)
    except ValueError:
        return Answer(f"HTTP {status}", content[:200].decode(errors="replace"), http=status, shape="text")
    if status == 200:
        failed = parsed[-1] if streams and isinstance(parsed, list) and parsed else None
        if isinstance(failed, dict) and "error" in failed:
            return _error(status, failed["error"], "last element")
        return Answer("OK", body=parsed, http=status)
    if isinstance(parsed, list) and len(parsed) == 1:
        return _error(status, parsed[0].get("error", {}), "array")
    return _error(status, parsed.get("error", {}) if isinstance(parsed, dict) else {}, "object")


def _error(status: int, error: Json, shape: str) -> Answer:
    if not isinstance(error, dict):
        return Answer(f"HTTP {status}", str(error), http=status, shape="other")
    code = str(error.get("status", f"HTTP {status}"))
    if error.get("code") != status and shape != "last element":
        shape += ", other code inside"
    return Answer(code, str(error.get("message", "")), http=status, shape=shape)


class Server:
    """One of the two servers, over both transports."""

    def __init__(self, address: str) -> None:
        self.grpc = GrpcTransport(address)
        self.rest = RestTransport(address)

    def transport(self, rest: bool) -> GrpcTransport | RestTransport:
        return self.rest if rest else self.grpc

    def close(self) -> None:
        self.grpc.close()
        self.rest.close()
