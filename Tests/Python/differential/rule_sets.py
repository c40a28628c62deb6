"""Draws rule sets, and requests that they evaluate."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random
from typing import Any

from support.tokens import unsigned

from .rule_expressions import TYPES, Expressions, Function, Scope

Json = Any

METHODS = ("get", "list", "create", "update", "delete")
COLLECTIONS = tuple(f"c{number}" for number in range(6))

#: The clients, by name.
TOKENS: dict[str, str | None] = {
    "nobody": None,
    "alice": unsigned("alice", email="alice@x.org", email_verified=True, level=3, admin=True, groups=["a", "b"]),
    "bob": unsigned("bob", email="bob@y.org", level=0, admin=False),
}

RICH: Json = {
    "n": {"integerValue": "5"},
    "zero": {"integerValue": "0"},
    "negative": {"integerValue": "-7"},
    "f": {"doubleValue": 2.5},
    "two": {"doubleValue": 2.0},
    "nan": {"doubleValue": "NaN"},
    "infinity": {"doubleValue": "Infinity"},
    "s": {"stringValue": "hello"},
    "emoji": {"stringValue": "h\u00e9\U0001f600"},
    "owner": {"stringValue": "alice"},
    "yes": {"booleanValue": True},
    "no": {"booleanValue": False},
    "nothing": {"nullValue": None},
    "l": {"arrayValue": {"values": [{"integerValue": "1"}, {"integerValue": "2"}, {"integerValue": "3"}]}},
    "strings": {"arrayValue": {"values": [{"stringValue": one} for one in "aba"]}},
    "empty": {"arrayValue": {}},
    "m": {
        "mapValue": {
            "fields": {
                "k": {"integerValue": "1"},
                "x": {"mapValue": {"fields": {"y": {"stringValue": "deep"}}}},
            }
        }
    },
    "none": {"mapValue": {}},
    "t": {"timestampValue": "2020-02-29T12:34:56.789012Z"},
    "before": {"timestampValue": "1969-12-31T23:59:58.5Z"},
    "g": {"geoPointValue": {"latitude": 10.0, "longitude": 20.0}},
    "bytes": {"bytesValue": "AP9o"},
}
#: The same names, mostly with other types.
ODD: Json = {
    "n": {"stringValue": "five"},
    "f": {"integerValue": "2"},
    "s": {"integerValue": "7"},
    "owner": {"stringValue": "bob"},
    "yes": {"stringValue": "true"},
    "l": {"stringValue": "list"},
    "m": {"nullValue": None},
    "t": {"integerValue": "1"},
    "strings": {"arrayValue": {"values": [{"integerValue": "1"}]}},
}


def stored(database: str) -> dict[str, Json]:
    """The existing documents, by path."""
    made = {"aux/x1": {"n": {"integerValue": "1"}, "s": {"stringValue": "x"}}, "aux/x2": RICH}
    for collection in COLLECTIONS:
        made[f"{collection}/a"] = {**RICH, "r": {"referenceValue": f"{database}/documents/aux/x1"}}
        made[f"{collection}/b"] = ODD
    made["c0/a/sub/s"] = {"n": {"integerValue": "1"}, "owner": {"stringValue": "alice"}}
    made["c1/a/sub/s/deep/d"] = {"n": {"integerValue": "1"}}
    return made


@dataclass(frozen=True)
class Asked:
    """One request: the body contains the paths that begin with `$`, which represents the database."""

    method: str
    body: Json
    who: str
    rest: bool
    #: The documents that it may change.
    touched: tuple[str, ...] = ()


@dataclass
class RuleValueSet:
    kind: str
    text: str
    asked: list[Asked] = field(default_factory=list)

    def line(self, number: int) -> str:
        lines = self.text.split("\n")
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""


class RuleSets:
    """One rule set of a seed, and the requests."""

    def __init__(self, seed: int, number: int) -> None:
        self.dice = Random(f"{seed}/{number}")

    def draw(self) -> RuleValueSet:
        kind = self.dice.choices(["expressions", "matches", "lists", "batches"], [60, 12, 16, 12])[0]
        made = RuleValueSet(kind, "")
        getattr(self, f"_{kind}")(made)
        return made

    # Expressions

    def _expressions(self, made: RuleValueSet) -> None:
        dice = self.dice
        functions: list[Function] = []
        head: list[str] = []
        for number in range(dice.choice([0, 0, 1, 2, 3])):
            head += self._function(f"f{number}", functions)
        body: list[str] = []
        for collection in COLLECTIONS:
            method = dice.choice(METHODS)
            body.append(f"match /{collection}/{{doc}} {{")
            for _ in range(dice.choice([1, 1, 1, 2, 3])):
                scope = Scope(method if method != "list" else "get", functions)
                condition = Expressions(dice, scope).condition(dice.choice([1, 2, 2, 3, 3, 4]))
                if dice.random() < 0.03:
                    condition = self._many()
                verb = dice.choice([method, method, "read, write", "write" if method != "get" else "read"])
                if method == "list":
                    verb = "get"
                body.append(f"allow {verb}: if {condition};")
            body.append("}")
            for _ in range(3):
                made.asked.append(self._single(collection, "get" if method == "list" else method))
        made.text = self._file(head, body)

    def _function(self, name: str, functions: list[Function]) -> list[str]:
        """A function's lines; it may call those before it."""
        dice = self.dice
        kinds = tuple(dice.choice(TYPES) for _ in range(dice.choice([0, 1, 1, 2, 3])))
        scope = Scope("get", list(functions), [(f"p{place}", kind) for place, kind in enumerate(kinds)], accesses=False)
        lines = [f"function {name}({', '.join(parameter for parameter, _ in scope.names)}) {{"]
        for place in range(dice.choice([0, 0, 1, 2])):
            kind = dice.choice(TYPES)
            text = Expressions(dice, scope).draw(kind, 2)
            lines.append(f"let v{place} = {text};")
            scope.names.append((f"v{place}", kind))
        result = dice.choice(["bool", "bool", *TYPES])
        lines += [f"return {Expressions(dice, scope).draw(result, 2)};", "}"]
        # A function does not see the captures of its caller.
        lines = [re.sub(r"\bdoc\b", "'a'", line.replace("$(doc)", "a").replace("$(db)", "x")) for line in lines]
        functions.append(Function(name, kinds, result))
        return lines

    def _file(self, head: list[str], body: list[str], version: int = 2) -> str:
        first = f"rules_version = '{version}';" if version == 2 or self.dice.random() < 0.5 else ""
        opening = [first, "service cloud.firestore {", "match /databases/{db}/documents {"]
        return "\n".join([*opening, *head, *body, "}", "}"]) + "\n"

    def _who(self) -> str:
        return self.dice.choices(list(TOKENS), [1, 3, 1])[0]

    def _asked(self, method: str, body: Json, *touched: str) -> Asked:
        return Asked(method, body, self._who(), self.dice.random() < 0.25, touched)

    def _single(self, collection: str, method: str) -> Asked:
        name = self.dice.choices(["a", "b", "none"], [6, 2, 1])[0]
        path = f"{collection}/{name}"
        match method:
            case "get":
                if self.dice.random() < 0.1:
                    return self._asked("BatchGetDocuments", {"database": "$", "documents": [f"$/documents/{path}"]})
                return self._asked("GetDocument", {"name": f"$/documents/{path}"})
            case "create":
                path = f"{collection}/new" if self.dice.random() < 0.9 else path
        return self._asked("Commit", {"database": "$", "writes": [self._write(method, path)]}, path)

    def _write(self, method: str, path: str) -> Json:
        dice = self.dice
        name = f"$/documents/{path}"
        if method == "delete":
            return {"delete": name}
        fields = dict(RICH if dice.random() < 0.7 else ODD)
        for gone in dice.sample(sorted(fields), dice.choice([0, 0, 1, 3])):
            del fields[gone]
        if dice.random() < 0.5:
            fields["n"] = {"integerValue": str(dice.choice([0, 5, 6, 7]))}
        if dice.random() < 0.3:
            fields["added"] = {"stringValue": "x"}
        write: Json = {"update": {"name": name, "fields": fields}}
        if method == "update" and dice.random() < 0.5:
            mask = dice.sample(["n", "s", "owner", "m.k", "added", "l"], dice.choice([1, 2, 3]))
            write["updateMask"] = {"fieldPaths": mask}
            write["update"]["fields"] = {key: one for key, one in fields.items() if key in mask or key + ".k" in mask}
        if dice.random() < 0.25:
            write["updateTransforms"] = [
                dice.choice(
                    [
                        {"fieldPath": "n", "increment": {"integerValue": "1"}},
                        {"fieldPath": "t", "setToServerValue": "REQUEST_TIME"},
                        {"fieldPath": "strings", "appendMissingElements": {"values": [{"stringValue": "c"}]}},
                        {"fieldPath": "strings", "removeAllFromArray": {"values": [{"stringValue": "a"}]}},
                        {"fieldPath": "f", "maximum": {"doubleValue": 3.0}},
                    ]
                )
            ]
        if dice.random() < 0.1:
            write["currentDocument"] = {"exists": dice.random() < 0.5}
        return write

    # Matches

    def _matches(self, made: RuleValueSet) -> None:
        dice = self.dice
        version = dice.choice([1, 2, 2])
        body: list[str] = []
        for _ in range(dice.choice([2, 3, 4])):
            self._match(body, 0, set(), version == 2)
        made.text = self._file([], body, version)
        paths = ["c0/a", "c1/a", "c2/b", "c0/a/sub/s", "c1/a/sub/s", "c1/a/sub/s/deep/d", "sub/x", "c0/a/c1/b"]
        for _ in range(12):
            path = dice.choice(paths)
            choice = dice.random()
            if choice < 0.4:
                made.asked.append(self._asked("GetDocument", {"name": f"$/documents/{path}"}))
            elif choice < 0.6:
                write = {"update": {"name": f"$/documents/{path}", "fields": {"n": {"integerValue": "1"}}}}
                made.asked.append(self._asked("Commit", {"database": "$", "writes": [write]}, path))
            elif choice < 0.7:
                write = {"delete": f"$/documents/{path}"}
                made.asked.append(self._asked("Commit", {"database": "$", "writes": [write]}, path))
            else:
                parent, collection, _ = ("/" + path).rsplit("/", 2)
                group = dice.random() < 0.4
                if group and dice.random() < 0.5:
                    parent = ""
                source = {"collectionId": collection, **({"allDescendants": True} if group else {})}
                query = {"parent": f"$/documents{parent}", "structuredQuery": {"from": [source]}}
                made.asked.append(self._asked("RunQuery", query))

    def _match(self, lines: list[str], depth: int, names: set[str], second: bool) -> None:
        dice = self.dice
        segments: list[str] = []
        has_glob = "**" in names
        for _ in range(dice.choice([1, 2, 2, 2, 3, 4]) if depth else dice.choice([2, 2, 2, 3, 4])):
            choice = dice.random()
            free = [name for name in "uvwxyz" if name not in names]
            if choice < 0.4 or not free:
                segments.append(dice.choice(["c0", "c1", "c2", "a", "b", "sub", "s", "deep"]))
                continue
            name = dice.choice(free)
            names.add(name)
            if choice < 0.85 or has_glob:
                segments.append(f"{{{name}}}")
            else:
                segments.append(f"{{{name}=**}}")
                has_glob = True
                names.add("**")
                if not second:
                    break
        lines.append(f"match /{'/'.join(segments)} {{")
        for _ in range(dice.choice([0, 1, 1, 2])):
            verbs = dice.sample(["read", "write", *METHODS], dice.choice([1, 1, 2]))
            lines.append(f"allow {', '.join(verbs)}: if {self._capture_condition(sorted(names - {'**'}))};")
        if depth < 2 and (second or not has_glob) and dice.random() < 0.5:
            self._match(lines, depth + 1, set(names), second)
        if lines[-1].startswith("match"):
            lines.append("allow get: if true;")
        lines.append("}")

    def _capture_condition(self, names: list[str]) -> str:
        dice = self.dice
        name = dice.choice(names) if names else "db"
        return dice.choice(
            [
                "true",
                "true",
                f"{name} == '{dice.choice(['a', 'b', 'c0', 'sub', 's'])}'",
                f"{name} != 'a'",
                f"{name} is string",
                f"{name} is path",
                f"{name}[0] == 'a'",
                f"{name}[1] == 'a'",
                f"{name} in ['a', 'c0', 'sub']",
                "db == '(default)'",
                "request.path[4] == 'a'",
                "resource.id == 'a'",
                "resource['__name__'][3] == 'c0'",
                f"exists(/databases/$(db)/documents/aux/$({name}))",
                f"{name}.size() == 1",
            ]
        )

    # Lists

    def _lists(self, made: RuleValueSet) -> None:
        dice = self.dice
        body: list[str] = []
        for collection in COLLECTIONS:
            body.append(f"match /{collection}/{{doc}} {{")
            for _ in range(dice.choice([1, 1, 2])):
                condition = self._list_condition()
                if dice.random() < 0.4:
                    condition = f"{condition} {dice.choice(['&&', '||'])} {self._list_condition()}"
                body.append(f"allow {dice.choice(['list', 'read'])}: if {condition};")
            body.append("}")
            for _ in range(3):
                made.asked.append(self._query(collection))
        made.text = self._file([], body)

    def _list_value(self) -> str:
        values = ["1", "5", "6", "7", "'a'", "'alice'", "'b'", "5.0", "true", "null", "request.auth.uid"]
        return self.dice.choice(values)

    def _list_condition(self) -> str:
        dice = self.dice
        data = "resource.data"
        name = dice.choice(["n", "n", "owner", "s", "yes", "l", "m.k"])
        op = dice.choice(["==", "==", "!=", "<", "<=", ">", ">="])
        return dice.choice(
            [
                *[f"{data}.{name} {op} {self._list_value()}"] * 6,
                f"{self._list_value()} {op} {data}.{name}",
                f"{data}.owner == request.auth.uid",
                f"({self._list_value()} in {data}.{name})",
                f"({data}.{name} in [5, 6, 'a', 'alice'])",
                f"{data}.l.hasAny([{self._list_value()}])",
                f"{data}.l.hasAny([{self._list_value()}, {self._list_value()}])",
                f"{data}.l.hasAll([{self._list_value()}])",
                f"({data}.{name} is {dice.choice(['int', 'string', 'number', 'list', 'bool', 'constraint'])})",
                f"('{dice.choice(['n', 'owner'])}' in {data})",
                f"!('{dice.choice(['n', 'owner'])}' in {data})",
                f"{data}.keys().hasOnly(['n', 'owner'])",
                f"{data}.keys().hasAll(['n'])",
                f"{data}.get('n', 5) == 5",
                f"{data}.size() == {dice.choice('012')}",
                f"{data}.{name} + 1 > 5",
                f"{data}.{name}.size() > 1",
                f"request.query.limit {op} {dice.choice([1, 10])}",
                f"request.query.offset {op} {dice.choice([0, 1])}",
                f"request.query.orderBy.n == '{dice.choice(['ASC', 'DESC'])}'",
                "resource == null",
                "resource != null",
                "doc == 'a'",
                "resource.id == 'a'",
                "request.path[3] == 'c0'",
                "request.auth != null",
                "request.resource == null",
                "true",
                "false",
                "exists(/databases/$(db)/documents/aux/x1)",
                "exists(/databases/$(db)/documents/aux/none)",
                "get(/databases/$(db)/documents/aux/$(request.auth.uid)).data.n == 1",
                f"get(/databases/$(db)/documents/aux/x1).data.n == {data}.n",
            ]
        )

    def _filter_value(self) -> Json:
        return self.dice.choice(
            [{"integerValue": str(number)} for number in (1, 5, 6, 7)]
            + [{"stringValue": text} for text in ("a", "alice", "b", "bob")]
            + [{"booleanValue": True}, {"doubleValue": 5.5}]
        )

    def _field_filter(self, used: set[str]) -> Json:
        dice = self.dice
        path = dice.choice([name for name in ["n", "n", "owner", "s", "yes", "l", "m.k"] if name not in used] or ["q"])
        ops = ["EQUAL", "EQUAL", "EQUAL", "LESS_THAN", "LESS_THAN_OR_EQUAL", "GREATER_THAN", "GREATER_THAN_OR_EQUAL"]
        op = dice.choice([*ops, "NOT_EQUAL", "IN", "ARRAY_CONTAINS", "ARRAY_CONTAINS_ANY", "IS_NULL", "IS_NOT_NULL"])
        used.add(path)
        if op.startswith("IS_"):
            return {"unaryFilter": {"field": {"fieldPath": path}, "op": op}}
        if op.startswith("ARRAY"):
            path = "l"
        operand = self._filter_value()
        if op in ("IN", "ARRAY_CONTAINS_ANY"):
            values = [self._filter_value() for _ in range(dice.choice([1, 2]))]
            operand = {"arrayValue": {"values": values}}
        return {"fieldFilter": {"field": {"fieldPath": path}, "op": op, "value": operand}}

    def _query(self, collection: str) -> Asked:
        dice = self.dice
        parent = "$/documents"
        if dice.random() < 0.08:
            return self._asked("ListDocuments", {"parent": parent, "collectionId": collection})
        query: Json = {"from": [{"collectionId": collection}]}
        count = dice.choice([0, 1, 1, 1, 2, 2])
        used: set[str] = set()
        filters = [self._field_filter(used) for _ in range(count)]
        inequalities = {"LESS_THAN", "LESS_THAN_OR_EQUAL", "GREATER_THAN", "GREATER_THAN_OR_EQUAL", "NOT_EQUAL"}
        if dice.random() < 0.06:
            name = {"referenceValue": f"$/documents/{collection}/{dice.choice('ab')}"}
            filters = [{"fieldFilter": {"field": {"fieldPath": "__name__"}, "op": "EQUAL", "value": name}}]
        if len(filters) == 1:
            query["where"] = filters[0]
        elif filters:
            query["where"] = {"compositeFilter": {"op": dice.choice(["AND", "AND", "OR"]), "filters": filters}}
        if dice.random() < 0.2:
            query["limit"] = dice.choice([1, 10, 11])
        if dice.random() < 0.1:
            query["offset"] = 1
        unequal = [one for one in filters if one.get("fieldFilter", {}).get("op") in inequalities]
        if not unequal and dice.random() < 0.15:
            query["orderBy"] = [{"field": {"fieldPath": "n"}, "direction": dice.choice(["ASCENDING", "DESCENDING"])}]
        if dice.random() < 0.2:
            counted = {"structuredQuery": query, "aggregations": [{"alias": "n", "count": {}}]}
            return self._asked("RunAggregationQuery", {"parent": parent, "structuredAggregationQuery": counted})
        return self._asked("RunQuery", {"parent": parent, "structuredQuery": query})

    # Batches

    def _batches(self, made: RuleValueSet) -> None:
        dice = self.dice
        body: list[str] = []
        for collection in COLLECTIONS:
            body.append(f"match /{collection}/{{doc}} {{")
            for _ in range(dice.choice([1, 2])):
                body.append(f"allow {dice.choice(['write', 'read, write', 'create, update', 'update, delete'])}: "
                            f"if {self._batch_condition()};")
            body.append("}")
        made.text = self._file([], body)
        for _ in range(12):
            if dice.random() < 0.2:
                names = [f"$/documents/{dice.choice(COLLECTIONS)}/{dice.choice(['a', 'b', 'none'])}" for _ in range(3)]
                made.asked.append(self._asked("BatchGetDocuments", {"database": "$", "documents": sorted(set(names))}))
                continue
            writes, touched = [], []
            for _ in range(dice.choice([1, 2, 2, 3, 4])):
                path = f"{dice.choice(COLLECTIONS)}/{dice.choice(['a', 'b', 'new', 'other'])}"
                if path in touched and dice.random() < 0.8:
                    continue
                method = dice.choice(["create", "update", "update", "delete"])
                writes.append(self._write(method, path))
                touched.append(path)
            made.asked.append(self._asked("Commit", {"database": "$", "writes": writes}, *dict.fromkeys(touched)))

    def _batch_condition(self) -> str:
        dice = self.dice
        path = f"/databases/$(db)/documents/{dice.choice(COLLECTIONS)}/{dice.choice(['a', 'b', 'new', '$(doc)'])}"
        simple = [
            f"existsAfter({path})",
            f"!existsAfter({path})",
            f"exists({path})",
            f"getAfter({path}).data.n == {dice.choice([5, 6])}",
            f"get({path}).data.n == 5",
            f"getAfter({path}).data.n != get({path}).data.n",
            f"getAfter({path}).data == request.resource.data",
            f"getAfter({path}).data.diff(get({path}).data).affectedKeys().hasOnly(['n', 's'])",
            "request.resource.data.n == 6",
            "request.resource.data.diff(resource.data).affectedKeys().hasAny(['n'])",
            "resource == null",
            "request.resource == null",
            "request.auth.uid == 'alice'",
            "true",
            "request.resource.data.t == request.time",
            f"getAfter({path}).data.t == request.time",
            "request.resource.id == 'a'",
            "request.method == 'update'",
        ]
        if dice.random() < 0.15:
            return self._many()
        return f" {dice.choice(['&&', '||'])} ".join(dice.sample(simple, dice.choice([1, 1, 2])))

    def _many(self) -> str:
        """Reads many documents: the same for all, or different ones for each."""
        dice = self.dice
        place = "/databases/$(db)/documents/many"
        paths = [dice.choice([f"{place}/x{number}", f"{place}/$(doc + '{number}')"]) for number in range(21)]
        if dice.random() < 0.5:
            paths = [f"{place}/x{number}" for number in range(21)]
        looks = [f"!{dice.choice(['exists', 'exists', 'existsAfter'])}({path})" for path in paths]
        return " && ".join(looks[: dice.choice([2, 5, 6, 7, 9, 10, 11, 20])])
