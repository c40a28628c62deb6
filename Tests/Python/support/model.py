"""An independent small Firestore: the effect of commits on documents, and the results of queries. Simplicity has
priority over speed.

It shares nothing with the server except the rules, which are Google's: "Sort and filter data", "Supported data types"
(value type ordering), and the comments of `google/firestore/v1/query.proto`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Moment(NamedTuple):
    """A timestamp value."""

    microseconds: int


Fields = dict[str, Any]
MISSING: Any = object()


# Values: None, bool, int, float, str, Moment, list, dict.


def rank(value: Any) -> int:
    match value:
        case None:
            return 1
        case bool():
            return 2
        case int() | float():
            return 3 if value != value else 4
        case Moment():
            return 5
        case str():
            return 6
        case list():
            return 10
        case dict():
            return 12
    raise TypeError(value)


def order(value: Any) -> Any:
    """A sort key for values of all types. Python compares integers with floats exactly, and strings by code point."""
    kind = rank(value)
    match kind:
        case 1 | 3:
            return (kind, 0)
        case 10:
            return (kind, tuple(order(element) for element in value))
        case 12:
            return (kind, tuple((key, order(value[key])) for key in sorted(value)))
        case _:
            return (kind, value)


def equivalent(one: Any, other: Any) -> bool:
    return order(one) == order(other)


def canonical(value: Any) -> str:
    """A string that is equal for identical values, which 3 and 3.0 are not."""
    match value:
        case None | bool():
            return str(value)
        case int():
            return f"i{value}"
        case float():
            return f"d{value!r}"
        case Moment():
            return f"t{value.microseconds}"
        case str():
            return f"s{len(value)}:{value}"
        case list():
            return "[" + ",".join(map(canonical, value)) + "]"
        case dict():
            return "{" + ",".join(f"{len(key)}:{key}={canonical(value[key])}" for key in sorted(value)) + "}"
    raise TypeError(value)


def encode(value: Any, into: Any) -> None:
    """Fills a `google.firestore.v1.Value`."""
    match value:
        case None:
            into.null_value = 0
        case bool():
            into.boolean_value = value
        case int():
            into.integer_value = value
        case float():
            into.double_value = value
        case str():
            into.string_value = value
        case Moment():
            into.timestamp_value.FromMicroseconds(value.microseconds)
        case list():
            into.array_value.SetInParent()
            for element in value:
                encode(element, into.array_value.values.add())
        case dict():
            into.map_value.SetInParent()
            for key, member in value.items():
                encode(member, into.map_value.fields[key])


def decode(value: Any) -> Any:
    match value.WhichOneof("value_type"):
        case "null_value":
            return None
        case "boolean_value":
            return value.boolean_value
        case "integer_value":
            return value.integer_value
        case "double_value":
            return value.double_value
        case "string_value":
            return value.string_value
        case "timestamp_value":
            return Moment(value.timestamp_value.ToMicroseconds())
        case "array_value":
            return [decode(element) for element in value.array_value.values]
        case "map_value":
            return decode_fields(value.map_value.fields)
        case other:
            raise ValueError(f"no value of the tests: {other}")


def decode_fields(fields: Any) -> Fields:
    return {key: decode(member) for key, member in fields.items()}


def get(fields: Fields, path: str) -> Any:
    value: Any = fields
    for segment in path.split("."):
        if not isinstance(value, dict) or segment not in value:
            return MISSING
        value = value[segment]
    return value


def with_value(fields: Fields, path: str, value: Any) -> Fields:
    """A copy with the value at the path; `MISSING` deletes."""
    segment, _, rest = path.partition(".")
    made = dict(fields)
    if rest:
        inner = fields.get(segment)
        if value is MISSING and not isinstance(inner, dict):
            return made
        made[segment] = with_value(inner if isinstance(inner, dict) else {}, rest, value)
    elif value is MISSING:
        made.pop(segment, None)
    else:
        made[segment] = value
    return made


# Documents and commits


@dataclass(frozen=True)
class Document:
    name: str
    created: int
    updated: int
    fields: Fields

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.name.split("/"))


class Entry(NamedTuple):
    """A document from a listener's point of view, in short."""

    created: int
    updated: int
    digest: int


def entry(created: int, updated: int, fields: Fields) -> Entry:
    return Entry(created, updated, hash(canonical(fields)))


@dataclass(frozen=True)
class Write:
    """One write of a commit. Without a mask a set; with fields None a delete."""

    name: str
    fields: Fields | None
    mask: tuple[str, ...] | None = None
    #: Path, kind, operand.
    transforms: tuple[tuple[str, str, Any], ...] = ()
    #: The precondition.
    exists: bool | None = None

    def apply(self, before: Fields | None, request_time: Moment) -> Fields | None:
        if self.fields is None:
            return None
        if self.mask is None:
            after = self.fields
        else:
            after = before or {}
            for path in self.mask:
                after = with_value(after, path, get(self.fields, path))
        for path, kind, operand in self.transforms:
            after = with_value(after, path, transformed(get(after, path), kind, operand, request_time))
        return after


def transformed(value: Any, kind: str, operand: Any, request_time: Moment) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "time":
            return request_time
        case "increment":
            return value + operand if is_number else operand
        case "maximum":
            return operand if not is_number or operand > value else value
        case "append":
            made = list(value) if isinstance(value, list) else []
            for element in operand:
                if not any(equivalent(element, known) for known in made):
                    made.append(element)
            return made
        case "remove":
            known = value if isinstance(value, list) else []
            return [one for one in known if not any(equivalent(one, element) for element in operand)]
    raise ValueError(kind)


@dataclass(frozen=True)
class Commit:
    time: int
    writes: tuple[Write, ...]
    #: What REQUEST_TIME was, which only the server knows.
    request_time: Moment = Moment(0)

    def apply(self, documents: dict[str, Document]) -> dict[str, Document | None]:
        """Changes the documents; returns those that differ. A write without a change does not count."""
        changed: dict[str, Document | None] = {}
        for write in self.writes:
            before = documents.get(write.name)
            fields = write.apply(before.fields if before else None, self.request_time)
            if fields is None:
                if before is not None:
                    del documents[write.name]
                    changed[write.name] = None
            elif before is None or canonical(before.fields) != canonical(fields):
                made = Document(write.name, before.created if before else self.time, self.time, fields)
                documents[write.name] = changed[write.name] = made
        return changed


# Queries


@dataclass(frozen=True)
class Query:
    """A query target; with `documents` a documents target."""

    collection: str = ""
    parent: str = ""
    group: bool = False
    #: `(path, operator, operand)`, or `("and" | "or", [filter, …])`.
    where: tuple[Any, ...] | None = None
    order: tuple[tuple[str, str], ...] = ()
    limit: int | None = None
    offset: int = 0
    #: Values, and whether the position is before equal values.
    start: tuple[tuple[Any, ...], bool] | None = None
    end: tuple[tuple[Any, ...], bool] | None = None
    select: tuple[str, ...] | None = None
    documents: tuple[str, ...] = ()
    _order: list[tuple[str, str]] = field(default_factory=list, compare=False)

    def __post_init__(self) -> None:
        self._order.extend(self.complete_order())

    @property
    def is_window(self) -> bool:
        return self.limit is not None or self.offset > 0

    def complete_order(self) -> list[tuple[str, str]]:
        made = list(self.order)
        direction = made[-1][1] if made else "asc"
        known = {path for path, _ in made}
        unequal = {path for path, op, _ in self.conditions() if op in ("<", "<=", ">", ">=", "!=", "not-in")}
        made += [(path, direction) for path in sorted(unequal - known - {"__name__"})]
        if "__name__" not in known:
            made.append(("__name__", direction))
        return made

    def conditions(self) -> Iterator[tuple[str, str, Any]]:
        waiting = [self.where] if self.where else []
        while waiting:
            one = waiting.pop()
            if one[0] in ("and", "or"):
                waiting.extend(one[1])
            else:
                yield one

    def is_in_scope(self, segments: tuple[str, ...]) -> bool:
        parent = tuple(self.parent.split("/")) if self.parent else ()
        if segments[: len(parent)] != parent or segments[-2] != self.collection:
            return False
        return self.group or len(segments) == len(parent) + 2

    def position(self, document: Document) -> tuple[Any, ...] | None:
        """The position of a document among the matches; None if it is not a match."""
        if self.documents:
            return (document.segments,) if document.name in self.documents else None
        if not self.is_in_scope(document.segments):
            return None
        if self.where and not matches(self.where, document):
            return None
        place: list[Any] = []
        for path, direction in self._order:
            value = _at(document, path)
            if value is MISSING:
                return None
            key = value if path == "__name__" else order(value)
            place.append(Descending(key) if direction == "desc" else key)
        if not (self._is_past(self.start, place, True) and self._is_past(self.end, place, False)):
            return None
        return tuple(place)

    def _is_past(self, bound: tuple[tuple[Any, ...], bool] | None, place: list[Any], starts: bool) -> bool:
        if bound is None:
            return True
        values, before = bound
        keys = [order(value) for value in values]
        limit = [Descending(key) if self._order[n][1] == "desc" else key for n, key in enumerate(keys)]
        prefix = place[: len(limit)]
        if prefix == limit:
            return before if starts else not before
        return limit < prefix if starts else prefix < limit

    def shown(self, fields: Fields) -> Fields:
        """The projection."""
        if self.select is None:
            return fields
        made: Fields = {}
        for path in self.select:
            value = get(fields, path)
            if value is not MISSING:
                made = with_value(made, path, value)
        return made

    def result(self, documents: Iterable[Document]) -> list[Document]:
        """The complete result, from all existing documents."""
        placed = [(place, document) for document in documents if (place := self.position(document)) is not None]
        found = [document for _, document in sorted(placed, key=lambda pair: pair[0])]
        end = None if self.limit is None else self.offset + self.limit
        return found[self.offset : end]


class Descending:
    """Sorts the other way round."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Descending) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and self.key == other.key

    __hash__ = None  # type: ignore[assignment]


def _at(document: Document, path: str) -> Any:
    return document.segments if path == "__name__" else get(document.fields, path)


def matches(condition: tuple[Any, ...], document: Document) -> bool:
    match condition:
        case ("and", parts):
            return all(matches(part, document) for part in parts)
        case ("or", parts):
            return any(matches(part, document) for part in parts)
        case ("__name__", op, operand):
            return _compares(document.segments, op, tuple(operand.split("/")))
        case (path, op, operand):
            value = get(document.fields, path)
            return value is not MISSING and _holds(value, op, operand)
    raise ValueError(condition)


def _compares(key: Any, op: str, other: Any) -> bool:
    match op:
        case "==":
            return bool(key == other)
        case "<":
            return bool(key < other)
        case "<=":
            return bool(key <= other)
        case ">":
            return bool(key > other)
        case ">=":
            return bool(key >= other)
    raise ValueError(op)


def _holds(value: Any, op: str, operand: Any) -> bool:
    match op:
        case "<" | "<=" | ">" | ">=":
            return rank(value) == rank(operand) and _compares(order(value), op, order(operand))
        case "==":
            return equivalent(value, operand)
        case "!=":
            return value is not None and not equivalent(value, operand)
        case "in":
            return any(equivalent(value, one) for one in operand)
        case "not-in":
            return value is not None and not any(equivalent(value, one) for one in operand)
        case "array-contains":
            return isinstance(value, list) and any(equivalent(one, operand) for one in value)
        case "array-contains-any":
            return isinstance(value, list) and any(equivalent(one, other) for one in value for other in operand)
    raise ValueError(op)


OPERATORS = {
    "==": "EQUAL",
    "!=": "NOT_EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
    "in": "IN",
    "not-in": "NOT_IN",
    "array-contains": "ARRAY_CONTAINS",
    "array-contains-any": "ARRAY_CONTAINS_ANY",
}


def fill_target(query: Query, root: str, target: Any) -> None:
    """Encodes a query in a `google.firestore.v1.Target`."""
    if query.documents:
        target.documents.documents.extend(f"{root}/{name}" for name in query.documents)
        return
    target.query.parent = f"{root}/{query.parent}" if query.parent else root
    made = target.query.structured_query
    made.from_.add(collection_id=query.collection, all_descendants=query.group)
    if query.where:
        _fill_filter(query.where, root, made.where)
    for path, direction in query.order:
        made.order_by.add(field={"field_path": path}, direction="ASCENDING" if direction == "asc" else "DESCENDING")
    if query.limit is not None:
        made.limit.value = query.limit
    made.offset = query.offset
    for bound, cursor in ((query.start, "start_at"), (query.end, "end_at")):
        if bound is not None:
            for value in bound[0]:
                encode(value, getattr(made, cursor).values.add())
            getattr(made, cursor).before = bound[1]
    if query.select is not None:
        made.select.SetInParent()
        for path in query.select:
            made.select.fields.add(field_path=path)


def _fill_filter(condition: tuple[Any, ...], root: str, into: Any) -> None:
    if condition[0] in ("and", "or"):
        into.composite_filter.op = "AND" if condition[0] == "and" else "OR"
        for part in condition[1]:
            _fill_filter(part, root, into.composite_filter.filters.add())
        return
    path, op, operand = condition
    into.field_filter.field.field_path = path
    into.field_filter.op = OPERATORS[op]
    if path == "__name__":
        into.field_filter.value.reference_value = f"{root}/{operand}"
    else:
        encode(operand, into.field_filter.value)
