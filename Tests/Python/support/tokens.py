"""Credentials of users: tokens that SDKs create for Google's emulator, and others that must not be accepted."""

from __future__ import annotations

import base64
import json
from typing import Any


def encoded(part: bytes | dict[str, Any]) -> str:
    """A part of a JSON Web Token."""
    content = part if isinstance(part, bytes) else json.dumps(part, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def unsigned(uid: str, **claims: Any) -> str:
    """The token of `@firebase/rules-unit-testing`: it is not signed."""
    return f"{encoded({'alg': 'none', 'type': 'JWT'})}.{encoded({'sub': uid, 'user_id': uid, **claims})}."


def bearer(token: str | None) -> str | None:
    return None if token is None else f"Bearer {token}"
