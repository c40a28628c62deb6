"""The preloaded shim of `faults.c`: built with the system's compiler, armed through a shared file."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WRITE, SYNC, TRUNCATE, OPEN = 1, 2, 4, 8
#: An entry that a test writes into a journal: the acknowledgement of a request.
MARK = 16
#: Only in a journal; the data is the new name.
RENAME = 32
ALWAYS = 2**62
NAMES = {WRITE: "write", SYNC: "sync", TRUNCATE: "truncate", OPEN: "open"}

_FIELDS = ("kinds", "calls", "first", "last", "error", "torn", "delay", "failures", "last_kind", "without_log")
_SIZE = 8 * (len(_FIELDS) + 9)
_HEAD = struct.Struct("=4q")


def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


class Faults:
    """The disk under `data`, from the point of view of a server that is started with `environment`."""

    def __init__(self, folder: Path, data: Path, journal: bool = False) -> None:
        library = folder / "faults.so"
        source = Path(__file__).with_name("faults.c")
        command = [compiler() or "cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl", "-lpthread"]
        subprocess.run(command, check=True)
        control = folder / "faults.control"
        control.write_bytes(bytes(_SIZE))
        self._file = control.open("r+b")
        self._map = mmap.mmap(self._file.fileno(), _SIZE)
        self.data = data
        self.journal = folder / "faults.journal" if journal else None
        self.environment = {"LD_PRELOAD": str(library), "FAULTS_FOLDER": str(data), "FAULTS_CONTROL": str(control)}
        if self.journal:
            self.journal.touch()
            self.environment["FAULTS_JOURNAL"] = str(self.journal)

    def _set(self, name: str, value: int) -> None:
        struct.pack_into("=q", self._map, 8 * _FIELDS.index(name), value)

    def __getattr__(self, name: str) -> int:
        if name not in _FIELDS:
            raise AttributeError(name)
        return struct.unpack_from("=q", self._map, 8 * _FIELDS.index(name))[0]

    def calls_of(self, kind: int) -> int:
        return struct.unpack_from("=q", self._map, 8 * (len(_FIELDS) + kind))[0]

    def arm(
        self,
        number: int,
        count: int,
        error: int,
        kinds: int = WRITE | SYNC | TRUNCATE,
        torn: float = 0,
        without_log: bool = False,
    ) -> None:
        """Makes the `number`-th call from now on fail (1 is the next one), and the `count - 1` calls after it.

        A torn write has written a part of its bytes. With the error 0 the calls appear to succeed, and have no effect.
        Without the log only what copies it into the database's file fails, with SQLite's own log.
        """
        self.lift()
        self._set("kinds", kinds)
        self._set("error", error)
        self._set("torn", int(torn * 1000))
        self._set("without_log", int(without_log))
        self._set("calls", 0)
        self._set("failures", 0)
        self._set("last", min(number + count - 1, ALWAYS))
        self._set("first", number)

    def count(self, kinds: int = WRITE | SYNC | TRUNCATE) -> None:
        """Counts calls from now on, without failures."""
        self.lift()
        self._set("kinds", kinds)
        self._set("without_log", 0)
        self._set("calls", 0)
        self._set("failures", 0)

    def lift(self) -> None:
        self._set("first", 0)

    def slow(self, seconds: float) -> None:
        """Delays every sync by this time."""
        self._set("delay", int(seconds * 1e6))

    def mark(self, number: int) -> None:
        """Records in the journal that a request was acknowledged."""
        assert self.journal is not None
        with self.journal.open("ab", buffering=0) as file:
            file.write(_HEAD.pack(MARK, 0, number, 0))


@dataclass(frozen=True)
class Event:
    kind: int
    name: str
    #: The offset of a write, the new length of a truncated file, or a mark's number.
    offset: int
    data: bytes


def events(journal: Path, with_data: bool = True) -> Iterator[Event]:
    with journal.open("rb") as file:
        while head := file.read(_HEAD.size):
            kind, name_length, offset, length = _HEAD.unpack(head)
            name = file.read(name_length).decode()
            if kind in (WRITE, RENAME):
                data = file.read(length) if with_data else b""
                if not with_data:
                    file.seek(length, 1)
            else:
                data = b""
            yield Event(kind, name, offset, data)
