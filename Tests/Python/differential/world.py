"""The small world of one episode: its database, its documents' names and its fields.

Pools are deliberately small. Two random requests only test each other when they use the same document, field or value.
"""

from __future__ import annotations

import re
from random import Random

from .request import Json, reference
from .values import Values

IDS = [
    *("a", "b", "c", "d", "e", "ab", "B", "1", "10", "2", "a-", "a.b", "é", "e\u0301", "\U0001f600", "\uffff", " "),
    *("a:b", "50%", "x+y", "q?r#s", "a\u0000", "..a", "__", "__id7__", "__id-3__", "__id12__", "_x__", "runQuery"),
]
COLLECTIONS = ["c", "d", "s", "c-", "C"]

# Field -> path string. The first are ordinary, the others need quoting in a path.
PLAIN_FIELDS = ["a", "b", "n", "t", "m", "v"]
ODD_FIELDS = ["a.b", "1x", "é", "`", "\\", " ", "_u", "\U0001f600", "__", "A"]
NESTED_PATHS = ["m.x", "m.y", "m.`a.b`", "a.x", "m.x.y", "m.`1`", "m.`é`", "m.z"]


def quoted(name: str) -> str:
    """A field name in the form of a field path."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name):
        return name
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


class World:
    """Names, fields and values of one episode, and which request last wrote which document."""

    def __init__(self, rng: Random, project: str) -> None:
        self.rng = rng
        self.project = project
        self.database_id = rng.choice(["(default)"] * 9 + ["named-db"])
        self.database = f"projects/{project}/databases/{self.database_id}"
        self.root = f"{self.database}/documents"
        self.paths = self._draw_paths()
        self.values = Values(rng, self.database, self.paths)
        # The path of a document's newest update time in earlier answers.
        self.last_writes: dict[str, list[tuple[str | int, ...]]] = {}
        self.commits: list[tuple[str | int, ...]] = []

    def _draw_paths(self) -> list[str]:
        rng = self.rng
        ids = rng.sample(IDS, 7)
        paths = [f"c/{name}" for name in ids[:5]] + [f"d/{name}" for name in ids[2:4]]
        for parent in rng.sample(paths, 3) + [f"c/{ids[6]}"]:
            paths.append(f"{parent}/{rng.choice(COLLECTIONS)}/{rng.choice(ids)}")
        paths.append(f"{paths[-1]}/{rng.choice(COLLECTIONS)}/{rng.choice(ids)}")
        return list(dict.fromkeys(paths))

    def path(self) -> str:
        return self.rng.choice(self.paths)

    def name(self, path: str | None = None) -> str:
        return f"{self.root}/{path or self.path()}"

    def parent(self) -> str:
        """A parent for queries and lists: mostly the root, otherwise a document, existing or not."""
        return self.root if self.rng.random() < 0.75 else self.name()

    def collection(self) -> str:
        return self.rng.choice(["c", "c", "c", "d", "s", "c-"])

    def field(self) -> str:
        return self.rng.choice(PLAIN_FIELDS if self.rng.random() < 0.85 else ODD_FIELDS)

    def field_path(self) -> str:
        return self.rng.choice(NESTED_PATHS) if self.rng.random() < 0.25 else quoted(self.field())

    def value_for(self, field: str) -> Json:
        """A value that the field usually has, so that typed operations have an effect."""
        roll = self.rng.random()
        if field == "n" and roll < 0.85:
            return self.values.number()
        if field == "t" and roll < 0.85:
            return self.values.array()
        if field == "m" and roll < 0.85:
            return self.values.map()
        if field == "v" and roll < 0.85:
            return self.values.vector()
        return self.values.any()

    def fields(self) -> Json:
        names = dict.fromkeys(self.field() for _ in range(self.rng.randint(0, 6)))
        return {name: self.value_for(name) for name in names}

    def noted(self, path: str, *place: str | int) -> None:
        """Records the path of the document's update time in the answer."""
        self.last_writes.setdefault(path, []).append(place)

    def update_time(self, path: str) -> Json:
        """The newest update time of the document in an answer: a failed request returned none."""
        time: Json = "2020-01-01T00:00:00Z"
        for index, *place in self.last_writes.get(path, [])[-4:]:
            time = reference(int(index), *place, stand_in=time)
        return time

    def read_time(self) -> Json | None:
        """A commit time or read time of an earlier answer, or None when there is none yet."""
        if not self.commits:
            return None
        index, *path = self.rng.choice(self.commits[-12:])
        return reference(int(index), *path)
