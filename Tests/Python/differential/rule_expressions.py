"""Draws conditions of security rules: expressions of every type, some of them with deliberate errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

TYPES = (
    *("bool", "int", "float", "string", "bytes", "list", "map", "set", "timestamp", "duration", "latlng", "path"),
    *("null", "diff"),
)
#: The types that `is` may name.
TYPE_NAMES = (
    *("bool", "bytes", "duration", "float", "int", "latlng", "list", "map", "number", "path", "string", "timestamp"),
    *("set", "map_diff", "vector", "constraint"),
)

DOCUMENTS = "/databases/$(db)/documents"


@dataclass(frozen=True)
class Function:
    name: str
    parameters: tuple[str, ...]
    result: str


@dataclass
class Scope:
    """The names that an expression may use."""

    #: The methods of the rule: they determine which of `resource` and `request.resource` exist.
    method: str = "get"
    functions: list[Function] = field(default_factory=list)
    #: Names with their types.
    names: list[tuple[str, str]] = field(default_factory=list)
    #: Whether documents may be looked up.
    accesses: bool = True


class Expressions:
    """All draws follow from `dice`; `depth` is the remaining depth of an expression."""

    #: How often an expression has another type than required.
    wrong = 0.04

    def __init__(self, dice: Random, scope: Scope) -> None:
        self.dice = dice
        self.scope = scope

    def draw(self, kind: str, depth: int) -> str:
        if self.dice.random() < self.wrong:
            kind = self.dice.choice(TYPES)
        leaves, branches = self._leaves(kind), self._branches(kind)
        if depth <= 0 or not branches or self.dice.random() < 0.15:
            return self.dice.choice(leaves)
        if self.dice.random() < 0.12:
            return self._common(kind, depth)
        return self.dice.choice(branches)(depth - 1)

    def condition(self, depth: int) -> str:
        return self.draw("bool", depth)

    # What every type has

    def _common(self, kind: str, depth: int) -> str:
        choices: list[Callable[[], str]] = [
            lambda: f"({self.draw('bool', depth - 1)} ? {self.draw(kind, depth - 1)} : {self.draw(kind, depth - 1)})",
            lambda: f"[{self.draw(kind, depth - 1)}, {self.draw(kind, depth - 1)}][{self.dice.choice('0112')}]",
            lambda: f"{{'a': {self.draw(kind, depth - 1)}}}.a",
            lambda: f"{{'a': {self.draw(kind, depth - 1)}}}.get('{self.dice.choice('ab')}', {self.draw(kind, 0)})",
            lambda: f"({self.draw(kind, depth - 1)})",
            lambda: self.dice.choice(self._leaves(kind)),
        ]
        for function in self.scope.functions:
            if function.result == kind:
                choices += [lambda function=function: self.call(function, depth)] * 3
        return self.dice.choice(choices)()

    def call(self, function: Function, depth: int) -> str:
        arguments = [self.draw(kind, depth - 1) for kind in function.parameters]
        if self.dice.random() < 0.03:
            arguments = arguments[:-1]
        return f"{function.name}({', '.join(arguments)})"

    def _data(self) -> str:
        if self.scope.method in ("create", "update", "write") and self.dice.random() < 0.5:
            return "request.resource.data"
        return "resource.data"

    def _document(self) -> str:
        return f"{DOCUMENTS}/{self.dice.choice(['aux/x1', 'aux/x2', 'aux/none', 'aux/$(doc)', 'c0/a'])}"

    def _leaves(self, kind: str) -> list[str]:
        data = self._data()
        leaves = [name for name, of in self.scope.names if of == kind] * 3
        match kind:
            case "bool":
                leaves += ["true", "false", f"{data}.yes", f"{data}.no", "(request.auth != null)", "(resource == null)"]
                leaves += ["request.auth.token.admin", "(request.auth.uid == 'alice')", f"{data}.missing"]
                leaves += [f"({data}.owner == request.auth.uid)"]
            case "int":
                leaves += ["0", "1", "2", "7", "-3", "9223372036854775807", "-9223372036854775808"]
                leaves += [f"{data}.n", f"{data}.zero", f"{data}.negative", f"{data}.m.k", f"{data}.l[0]"]
                leaves += ["request.auth.token.level", f"{data}.missing"]
            case "float":
                leaves += ["0.0", "1.5", "2.0", "-2.5", "1e3".replace("e3", "000.0"), f"{data}.f", f"{data}.two"]
                leaves += [f"{data}.nan", f"{data}.infinity"]
            case "string":
                leaves += ["''", "'a'", '"hello"', "'Hällo'", "'a,b,c'", "'7'", "'-2'", "'1.5'"]
                leaves += ["'\\u0041\\x42\\103\\n'"]
                leaves += [f"{data}.s", f"{data}.owner", f"{data}.emoji", f"{data}.m.x.y", "request.auth.uid", "doc"]
                leaves += ["request.method", "request.auth.token.email", f"{data}['s']"]
            case "bytes":
                leaves += ["b'hi'", "b'\\x00\\xff'", "b''", f"{data}.bytes", "'hé'.toUtf8()"]
            case "list":
                leaves += ["[]", "[1, 2, 3]", "['a', 'b', 'a']", "[1, 'a', null, 2.0]", "[[1], [2]]", f"{data}.l"]
                leaves += [f"{data}.strings", f"{data}.empty", "['a', 'b',]"]
            case "map":
                leaves += ["{}", "{'a': 1}", "{'a': 1, 'b': {'c': 'd'}}", f"{data}.m", f"{data}.none", data]
                leaves += ["request.auth.token", "{'b': 2, 'a': 1,}"]
            case "set":
                leaves += ["[].toSet()", "['a', 'b'].toSet()", "[1, 2, 1].toSet()", f"{data}.strings.toSet()"]
            case "timestamp":
                leaves += ["timestamp.date(2020, 2, 29)", "timestamp.value(0)", "timestamp.value(1582979696789)"]
                leaves += [f"{data}.t", f"{data}.before", "timestamp.value(-1500)", "request.time"]
            case "duration":
                leaves += ["duration.value(1, 'h')", "duration.value(-90, 's')", "duration.time(1, 2, 3, 4)"]
                leaves += ["duration.value(1500, 'ms')", "duration.value(2, 'w')", "duration.value(0, 'd')"]
            case "latlng":
                leaves += ["latlng.value(10, 20)", "latlng.value(-33.5, 151.25)", f"{data}.g"]
            case "path":
                leaves += ["/a/b", "/a/$('b')/c", "/databases/$(db)/documents/aux/x1", f"{data}.r", "request.path"]
                leaves += ["path('a/b')", "path('/a/b')", "/a/{x}/c"]
            case "null":
                leaves += ["null", f"{data}.nothing"]
            case "diff":
                leaves += ["{'a': 1, 'b': 2}.diff({'b': 3, 'c': 4})", "{}.diff({'a': 1})"]
                leaves += ["{'a': {'b': 1}}.diff({'a': {'b': 1}})"]
                if self.scope.method in ("update", "write"):
                    leaves += ["request.resource.data.diff(resource.data)"] * 4
        return leaves

    def _branches(self, kind: str) -> list[Callable[[int], str]]:
        return getattr(self, f"_{kind}_branches")()

    def _of(self, template: str, *kinds: str) -> Callable[[int], str]:
        """Fills each `%` with an expression of a type."""

        def fill(depth: int) -> str:
            parts = template.split("%")
            made = parts[0]
            for kind, part in zip(kinds, parts[1:], strict=True):
                made += self.draw(kind, depth) + part
            return made

        return fill

    def _same(self, template: str, *kinds: str) -> Callable[[int], str]:
        """Both sides of the same type, mostly."""

        def fill(depth: int) -> str:
            kind = self.dice.choice(kinds)
            return self._of(template, kind, kind)(depth)

        return fill

    def _comparison(self, depth: int) -> str:
        op = self.dice.choice(["<", "<=", ">", ">="])
        kinds = self.dice.choice(
            [("int", "int"), ("float", "int"), ("string", "string"), ("timestamp", "timestamp"), ("float", "float")]
            + [("duration", "duration"), ("bytes", "bytes")]
        )
        return f"({self.draw(kinds[0], depth)} {op} {self.draw(kinds[1], depth)})"

    def _bool_branches(self) -> list[Callable[[int], str]]:
        of, same = self._of, self._same
        equals = self.dice.choice(["==", "==", "!="])
        branches = [
            of("(% && %)", "bool", "bool"),
            of("(% || %)", "bool", "bool"),
            of("% && % || %", "bool", "bool", "bool"),
            of("!(%)", "bool"),
            of("!%", "bool"),
            self._comparison,
            self._comparison,
            *[same(f"(% {equals} %)", *TYPES)] * 4,
            of(f"(% {equals} %)", "int", "float"),
            lambda depth: f"({self.draw(self.dice.choice(TYPES), depth)} is {self.dice.choice(TYPE_NAMES)})",
            self._own_type,
            of("(% in %)", "string", "list"),
            of("(% in %)", "int", "list"),
            of("(% in %)", "string", "map"),
            of("(% in %)", "string", "set"),
            of("%.hasAll(%)", "list", "list"),
            of("%.hasAny(%)", "list", "list"),
            of("%.hasOnly(%)", "list", "list"),
            of("%.hasAll(%)", "set", "list"),
            of("%.hasAny(%)", "set", "set"),
            of("%.hasOnly(%)", "set", "list"),
            lambda depth: f"{self.draw('string', depth)}.matches('{self.dice.choice(PATTERNS)}')",
            of("math.isNaN(%)", "float"),
            lambda depth: self._has_keys(depth),
        ]
        if self.scope.accesses:
            branches += [lambda depth: f"exists({self._document()})", lambda depth: f"existsAfter({self._document()})"]
            branches += [self._look_up] * 2
        return branches

    def _own_type(self, depth: int) -> str:
        kind = self.dice.choice(TYPES)
        return f"({self.draw(kind, depth)} is {dict(null='string', diff='map_diff').get(kind, kind)})"

    def _look_up(self, depth: int) -> str:
        document = f"{self.dice.choice(['get', 'getAfter'])}({self._document()})"
        return self.dice.choice(
            [
                f"({document} == null)",
                f"({document} != null)",
                f"({document}.id == 'x1')",
                f"({document}.data.n == {self.draw('int', 0)})",
                f"({document}.data.s == {self.draw('string', depth)})",
                f"('n' in {document}.data)",
            ]
        )

    def _has_keys(self, depth: int) -> str:
        method = self.dice.choice(["hasAll", "hasAny", "hasOnly"])
        return f"{self.draw('map', depth)}.keys().{method}({self.draw('list', 0)})"

    def _int_branches(self) -> list[Callable[[int], str]]:
        of = self._of
        arithmetic = self.dice.choice(["+", "-", "*", "/ ", "%"])
        branches = [
            lambda depth: f"({self.draw('int', depth)} {arithmetic} {self.draw('int', depth)})",
            lambda depth: f"({self.draw('int', depth)} {arithmetic} {self.draw('int', depth)})",
            of("-%", "int"),
            of("%.size()", "string"),
            of("%.size()", "list"),
            of("%.size()", "map"),
            of("%.size()", "set"),
            of("%.size()", "bytes"),
            of("%[%]", "list", "int"),
            of("math.abs(%)", "int"),
            of("math.round(%)", "float"),
            of("int(%)", "float"),
            of("int(%)", "string"),
            lambda depth: f"{self.draw('timestamp', depth)}.{self.dice.choice(TIME_PARTS)}()",
            lambda depth: f"{self.draw('duration', depth)}.{self.dice.choice(['seconds', 'nanos'])}()",
        ]
        if self.scope.accesses:
            branches += [lambda depth: f"{self.dice.choice(['get', 'getAfter'])}({self._document()}).data.n"]
        return branches

    def _float_branches(self) -> list[Callable[[int], str]]:
        of = self._of
        arithmetic = self.dice.choice(["+", "-", "*", "/ ", "%"])
        return [
            lambda depth: f"({self.draw('float', depth)} {arithmetic} {self.draw('float', depth)})",
            lambda depth: f"({self.draw('int', depth)} {arithmetic} {self.draw('float', depth)})",
            of("-%", "float"),
            of("math.ceil(%)", "float"),
            of("math.floor(%)", "float"),
            of("math.sqrt(%)", "int"),
            of("math.pow(%, %)", "int", "float"),
            of("math.abs(%)", "float"),
            of("float(%)", "int"),
            of("float(%)", "string"),
            of("%.latitude()", "latlng"),
            of("%.longitude()", "latlng"),
        ]

    def _string_branches(self) -> list[Callable[[int], str]]:
        of = self._of
        return [
            of("(% + %)", "string", "string"),
            of("%.lower()", "string"),
            of("%.upper()", "string"),
            of("%.trim()", "string"),
            of(f"%.replace('{self.dice.choice(PATTERNS)}', %)", "string", "string"),
            of("%.split(',')[%]", "string", "int"),
            of("%[%]", "string", "int"),
            of("%[%:%]", "string", "int", "int"),
            of("string(%)", "int"),
            of("string(%)", "float"),
            of("string(%)", "bool"),
            of("string(%)", "null"),
            of("%.join('-')", "list"),
            of("%[%]", "path", "int"),
            of("%.keys()[%]", "map", "int"),
            of("%.toBase64()", "bytes"),
            of("%.toHexString()", "bytes"),
            of("string(%)", "path"),
        ]

    def _bytes_branches(self) -> list[Callable[[int], str]]:
        hash_name = self.dice.choice(["md5", "sha256", "crc32", "crc32c"])
        return [self._of("%.toUtf8()", "string"), self._of(f"hashing.{hash_name}(%)", "string")]

    def _list_branches(self) -> list[Callable[[int], str]]:
        of = self._of
        return [
            of("[%, %]", "int", "string"),
            of("[%, %]", "string", "string"),
            of("%.concat(%)", "list", "list"),
            of("%.removeAll(%)", "list", "list"),
            of("%[%:%]", "list", "int", "int"),
            of("%.keys()", "map"),
            of("%.split(',')", "string"),
            of("%.values()", "map"),
        ]

    def _map_branches(self) -> list[Callable[[int], str]]:
        of = self._of
        branches = [
            of("{'a': %, 'b': %}", "int", "string"),
            of("{(%): %}", "string", "int"),
            of("%.get('x', %)", "map", "map"),
            of("%.get(['m', 'x'], %)", "map", "map"),
        ]
        if self.scope.accesses:
            branches += [lambda depth: f"get({self._document()}).data"]
        return branches

    def _set_branches(self) -> list[Callable[[int], str]]:
        of = self._of
        part = self.dice.choice(["addedKeys", "removedKeys", "changedKeys", "affectedKeys", "unchangedKeys"])
        return [
            of("%.toSet()", "list"),
            of("%.union(%)", "set", "set"),
            of("%.difference(%)", "set", "set"),
            of("%.intersection(%)", "set", "set"),
            of(f"%.{part}()", "diff"),
            of(f"%.{part}()", "diff"),
        ]

    def _timestamp_branches(self) -> list[Callable[[int], str]]:
        of = self._of
        sign = self.dice.choice("+-")
        return [
            of(f"(% {sign} %)", "timestamp", "duration"),
            of("(% + %)", "duration", "timestamp"),
            of("%.date()", "timestamp"),
        ]

    def _duration_branches(self) -> list[Callable[[int], str]]:
        of = self._of
        sign = self.dice.choice("+-")
        return [
            of("(% - %)", "timestamp", "timestamp"),
            of(f"(% {sign} %)", "duration", "duration"),
            of("%.time()", "timestamp"),
            of("duration.abs(%)", "duration"),
            of("-%", "duration"),
            of(f"duration.value(%, '{self.dice.choice(['w', 'd', 'h', 'm', 's', 'ms', 'ns', 'y'])}')", "int"),
        ]

    def _latlng_branches(self) -> list[Callable[[int], str]]:
        return [self._of("latlng.value(%, %)", "float", "float"), self._of("latlng.value(%, %)", "int", "int")]

    def _path_branches(self) -> list[Callable[[int], str]]:
        of = self._of
        return [of("/a/$(%)/b", "string"), of("path(%)", "string"), of("(/a/{x}/c).bind({'x': %})", "string")]

    def _null_branches(self) -> list[Callable[[int], str]]:
        return []

    def _diff_branches(self) -> list[Callable[[int], str]]:
        return [self._of("%.diff(%)", "map", "map")]


PATTERNS = ("a", ".*", "[a-z]+", "h(.)l+o", "\\\\d+", "", "^hello$", "(?i)HELLO", "[^,]*,?", "x*")
TIME_PARTS = (
    *("year", "month", "day", "hours", "minutes", "seconds", "nanos", "dayOfWeek", "dayOfYear", "toMillis"),
)
