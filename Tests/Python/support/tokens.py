"""Credentials of users: tokens as SDKs make them up for Google's emulator, and others that nobody should believe."""

from __future__ import annotations

import base64
import json
from typing import Any


def encoded(part: bytes | dict[str, Any]) -> str:
    """A part of a JSON Web Token."""
    content = part if isinstance(part, bytes) else json.dumps(part, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def unsigned(uid: str, **claims: Any) -> str:
    """What `@firebase/rules-unit-testing` sends: nobody has signed it."""
    return f"{encoded({'alg': 'none', 'type': 'JWT'})}.{encoded({'sub': uid, 'user_id': uid, **claims})}."


def bearer(token: str | None) -> str | None:
    return None if token is None else f"Bearer {token}"
