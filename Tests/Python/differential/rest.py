"""How each method looks as an HTTP request: the bindings of the public service definition."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from .request import Json

# Methods with a custom verb: the member that is in the path, and the verb.
_CUSTOM = {
    "BatchGetDocuments": ("database", "documents:batchGet"),
    "BeginTransaction": ("database", "documents:beginTransaction"),
    "Commit": ("database", "documents:commit"),
    "Rollback": ("database", "documents:rollback"),
    "BatchWrite": ("database", "documents:batchWrite"),
    "RunQuery": ("parent", ":runQuery"),
    "RunAggregationQuery": ("parent", ":runAggregationQuery"),
    "PartitionQuery": ("parent", ":partitionQuery"),
    "ListCollectionIds": ("parent", ":listCollectionIds"),
}


def http_request(method: str, body: Json) -> tuple[str, str, Json | None]:
    """Verb, target and JSON body."""
    if method in _CUSTOM:
        member, verb = _CUSTOM[method]
        rest = {key: value for key, value in body.items() if key != member}
        joint = "/" if member == "database" else ""
        return "POST", path_of(body.get(member, "")) + joint + verb, rest
    rest = dict(body)
    match method:
        case "GetDocument":
            return "GET", path_of(rest.pop("name", "")) + _query(rest), None
        case "DeleteDocument":
            return "DELETE", path_of(rest.pop("name", "")) + _query(rest), None
        case "ListDocuments":
            path = path_of(f"{rest.pop('parent', '')}/{rest.pop('collectionId', '')}")
            return "GET", path + _query(rest), None
        case "CreateDocument":
            path = path_of(f"{rest.pop('parent', '')}/{rest.pop('collectionId', '')}")
            document = rest.pop("document", {})
            return "POST", path + _query(rest), document
        case "UpdateDocument":
            document = rest.pop("document", {})
            return "PATCH", path_of(document.get("name", "")) + _query(rest), document
    raise ValueError(f"no binding for {method}")


def expressible(method: str, body: Json) -> bool:
    """Whether REST can express the same request, for the emulator as well.

    Five defects of the emulator would only cause noise: it treats any colon as the one before a custom verb, loses
    segments that are a space, never answers a PATCH whose body names another document than the path, misreads times in
    query strings, and loses the sign of -0.0 in a body. The end-to-end tests cover these.
    """
    if _has_minus_zero(body):
        return False
    path = "/".join(str(body.get(key, "")) for key in ("name", "parent", "collectionId", "documentId"))
    if " " in path.split("/"):
        return False
    if method in _CUSTOM:
        return ":" not in path
    if method == "UpdateDocument" and " " in str(body["document"].get("name", "")).split("/"):
        return False
    if not body.get("collectionId", "c") or "/" in body.get("collectionId", ""):
        return False
    # A query string cannot express a mask that is present and empty, nor a condition without a kind.
    if any(key in body and not body[key].get("fieldPaths") for key in ("mask", "updateMask")):
        return False
    condition = body.get("currentDocument", {"exists": True})
    return "readTime" not in body and "exists" in condition


def path_of(name: str) -> str:
    # The emulator does not decode the parentheses of `(default)` before custom verbs, so they are not encoded.
    return "/v1/" + "/".join(quote(segment, safe="()") for segment in name.split("/"))


def _query(members: Json) -> str:
    pairs: list[str] = []
    _flatten("", members, pairs)
    return "?" + "&".join(pairs) if pairs else ""


def _flatten(prefix: str, node: Any, pairs: list[str]) -> None:
    if isinstance(node, dict):
        for key, member in node.items():
            _flatten(f"{prefix}.{key}" if prefix else key, member, pairs)
    elif isinstance(node, list):
        for member in node:
            _flatten(prefix, member, pairs)
    else:
        text = str(node).lower() if isinstance(node, bool) else str(node)
        pairs.append(f"{prefix}={quote(text, safe='')}")


def _has_minus_zero(node: Json) -> bool:
    if isinstance(node, dict):
        return any(_has_minus_zero(member) for member in node.values())
    if isinstance(node, list):
        return any(_has_minus_zero(member) for member in node)
    return isinstance(node, float) and repr(node) == "-0.0"
