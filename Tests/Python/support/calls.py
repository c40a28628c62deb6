"""Calls of Firestore's methods over one gRPC channel, without the client library and what it retries."""

from __future__ import annotations

from typing import Any

import grpc

from support.patience import PATIENCE
from support.wire import METHODS

OWNER = [("authorization", "Bearer owner")]


class Calls:
    """Each method as a function from request message to response message; a stream is returned as a list."""

    def __init__(self, address: str) -> None:
        # One connection each: channels to one address share a connection by default.
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        self.channel = grpc.insecure_channel(address, options=options)
        self._stubs: dict[str, Any] = {}
        for name, method in METHODS.items():
            make = self.channel.unary_stream if method.streams else self.channel.unary_unary
            self._stubs[name] = make(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )

    def __call__(self, name: str, request: Any, timeout: float = PATIENCE) -> Any:
        answer = self._stubs[name](request, metadata=OWNER, timeout=timeout)
        return list(answer) if METHODS[name].streams else answer

    def close(self) -> None:
        self.channel.close()
