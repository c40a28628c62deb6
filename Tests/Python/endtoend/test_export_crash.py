"""`hearth export`, `import`, `backup` and `restore`, or the server, are killed at random moments while writers move
amounts between documents: nothing that looks whole is incomplete, the sum is exact in every export and backup, an import
that is repeated is complete, and `hearth check` finds nothing.

    HEARTH_TEST_KILLS=100 HEARTH_TEST_SEED=7 pytest endtoend/test_export_crash.py -s     # about a second a kill
"""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.patience import PATIENCE
from support.program import BINARY, Program, assert_sound, environment_of_a_child
from support.servers import free_port

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

ACCOUNTS = 40
SUM = 100 * ACCOUNTS
#: Documents beside those that writers change.
OTHERS = 3000
WRITERS = 4
ROOT = "projects/p/databases/(default)/documents"


def increment(number: int, amount: int) -> dict[str, Any]:
    transform = {"fieldPath": "n", "increment": {"integerValue": str(amount)}}
    return {"update": {"name": f"{ROOT}/accounts/{number}"}, "updateMask": {}, "updateTransforms": [transform]}


class Writer(threading.Thread):
    """Moves amounts between documents, each in one commit, also when the server was away for a while."""

    def __init__(self, port: int, seed: str) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.choice = random.Random(seed)
        self.is_over = False
        self.commits = 0
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.is_over:
                self.move_until_lost()
        except BaseException as error:  # noqa: BLE001 - for the test's thread
            self.fault = error

    def move_until_lost(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            while not self.is_over:
                (one, other), amount = self.choice.sample(range(ACCOUNTS), 2), self.choice.randrange(50)
                writes = [increment(one, amount), increment(other, -amount)]
                connection.request("POST", f"/v1/{ROOT}:commit", json.dumps({"writes": writes}))
                answer = connection.getresponse()
                body = answer.read()
                # A server that is ended or just started answers so, too.
                assert answer.status in (200, 503), body
                self.commits += answer.status == 200
                time.sleep(0.001)
        except (OSError, http.client.HTTPException):
            time.sleep(0.01)
        finally:
            connection.close()


class Site:
    """The server, its writers, a whole export and a whole backup of it, and what is judged by them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.choice = random.Random(seed)
        self.port = free_port()
        self.start()
        self.number = 0
        self.outcomes: Counter[str] = Counter()
        #: How long each command takes that nobody kills.
        self.seconds: dict[str, float] = {}
        accounts = [f'{{"name":"accounts/{n}","fields":{{"n":{{"integerValue":"100"}}}}}}\n' for n in range(ACCOUNTS)]
        filler = '{"name":"others/%d","fields":{"n":{"integerValue":"%d"},"s":{"stringValue":"' + "x" * 200 + '"}}}\n'
        (folder / "lines").write_text("".join(accounts) + "".join(filler % (n, n) for n in range(OTHERS)))
        self.run("import", "lines", *self.of("p"))
        self.writers = [Writer(self.port, f"{seed} {number}") for number in range(WRITERS)]
        for writer in self.writers:
            writer.start()

    # The server

    def start(self) -> None:
        self.server = Program(self.folder, "--project", "p", port=self.port)

    def restart(self) -> None:
        self.server.kill()
        assert_sound(self.folder / "hearth-data")
        self.start()

    def close(self) -> None:
        for writer in self.writers:
            writer.is_over = True
        for writer in self.writers:
            writer.join(PATIENCE)
            assert not writer.is_alive() and writer.fault is None, writer.fault
        if self.server.process.poll() is None:
            self.server.kill()

    # Commands

    def of(self, project: str) -> list[str]:
        return ["--address", self.server.address, "--project", project]

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [BINARY, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            env=environment_of_a_child(),
        )

    def run(self, *words: str) -> str:
        ended = self.begin(*words)
        output, complaint = ended.communicate(timeout=PATIENCE)
        assert ended.returncode == 0, (words, complaint)
        return output.decode()

    def code(self, *words: str) -> int:
        ended = self.begin(*words)
        ended.communicate(timeout=PATIENCE)
        return ended.returncode

    def wait_for_a_moment(self, command: str) -> None:
        """The moment is the test's subject: nothing is awaited."""
        time.sleep(self.choice.random() * self.seconds[command] * 1.1)

    def kill(self, *words: str) -> None:
        process = self.begin(*words)
        self.wait_for_a_moment(words[0])
        process.kill()
        process.communicate()

    def lose_server(self, *words: str) -> tuple[int, str]:
        """The server is killed, and comes back while the command waits for it."""
        process = self.begin(*words)
        self.wait_for_a_moment(words[0])
        self.restart()
        _, complaint = process.communicate(timeout=PATIENCE)
        return process.returncode, complaint.decode()

    def measure(self, *words: str) -> None:
        began = time.monotonic()
        self.run(*words)
        self.seconds[words[0]] = time.monotonic() - began

    def name(self, kind: str) -> str:
        self.number += 1
        return f"{kind}{self.number}"

    # Judgements

    def documents(self, project: str) -> dict[str, Any]:
        return read(self.run("export", "-", "--format", "ndjson", "--quiet", *self.of(project)))

    def judge_export(self, path: str) -> None:
        """It is whole."""
        project = self.name("copy")
        self.run("import", path, *self.of(project))
        judge(self.documents(project))

    def judge_backup(self, path: str) -> None:
        data = self.name("restored")
        self.run("restore", path, "--data", data)
        self.judge_data(data)

    def judge_data(self, data: str) -> None:
        assert_sound(self.folder / data)
        copy = Program(self.folder, "--data", data, "--project", "p")
        try:
            words = ["export", "-", "--format", "ndjson", "--quiet", "--address", copy.address, "--project", "p"]
            judge(read(self.run(*words)))
        finally:
            copy.kill()
        shutil.rmtree(self.folder / data)

    def rest(self, kind: str) -> list[str]:
        return [path.name for path in self.folder.iterdir() if f".{kind}" in path.name]

    def clear(self, *names: str) -> None:
        for name in names:
            path = self.folder / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def read(content: str) -> dict[str, Any]:
    documents = [json.loads(line) for line in content.splitlines()]
    found = {document["name"]: document["fields"] for document in documents}
    assert len(found) == len(documents)
    return found


def judge(found: dict[str, Any]) -> None:
    accounts = [int(fields["n"]["integerValue"]) for name, fields in found.items() if name.startswith("accounts/")]
    assert (len(accounts), sum(accounts), len(found)) == (ACCOUNTS, SUM, ACCOUNTS + OTHERS)


# Who is killed


def take(
    site: Site, command: str, path: str, looks_whole: Callable[[str], bool], judge_one: Callable[[str], None]
) -> str:
    """Judges what a command that makes `path` has left, and removes it."""
    present = [name for name in [path, *site.rest("partial"), *site.rest("replaced")] if (site.folder / name).exists()]
    for name in present:
        if looks_whole(name):
            judge_one(name)
        else:
            assert ".partial" in name, (command, name)
    site.clear(*present)
    return "whole" if path in present else "nothing"


def verifies(site: Site, *words: str) -> Callable[[str], bool]:
    return lambda name: site.code(words[0], name, *words[1:]) == 0


def exporting(site: Site, *, replaces: bool = False) -> str:
    path = site.name("export")
    words = ["export", path, *site.of("p")]
    if replaces:
        site.run(*words)
        words.append("--force")
    site.kill(*words)
    if replaces and not (site.folder / path).exists():
        assert site.rest("replaced"), "neither the former export nor the new one is there"
    return take(site, "export", path, verifies(site, "import", "--verify-only"), site.judge_export)


def exporting_over(site: Site) -> str:
    return exporting(site, replaces=True)


def exporting_lines(site: Site) -> str:
    """A file with lines has no mark of its end: its name alone says that it is whole."""
    path = site.name("lines")
    site.kill("export", path, "--format", "ndjson", *site.of("p"))
    return take(site, "export", path, lambda name: ".partial" not in name, site.judge_export)


def importing(site: Site) -> str:
    project = site.name("imported")
    site.kill("import", "whole", *site.of(project))
    wanted = read((site.folder / "whole.lines").read_text())
    found = site.documents(project)
    assert found.items() <= wanted.items()
    site.run("import", "whole", *site.of(project))
    assert site.documents(project) == wanted
    return "whole" if len(found) == len(wanted) else "a part" if found else "nothing"


def backing_up(site: Site, *, replaces: bool = False) -> str:
    path = site.name("backup")
    words = ["backup", path, "--address", site.server.address]
    if replaces:
        back_up(site, *words)
        words.append("--force")
    site.kill(*words)
    if replaces and not (site.folder / path).exists():
        assert site.rest("replaced"), "neither the former backup nor the new one is there"
    result = take(site, "backup", path, verifies(site, "restore", "--verify-only"), site.judge_backup)
    # The server may not have noticed at once.
    back_up(site, "backup", "after", "--address", site.server.address)
    site.clear("after")
    return result


def back_up(site: Site, *words: str) -> None:
    end = time.monotonic() + PATIENCE
    while site.code(*words) != 0:
        assert time.monotonic() < end, "no backup can be made"


def backing_up_over(site: Site) -> str:
    return backing_up(site, replaces=True)


def restoring(site: Site) -> str:
    data = site.name("data")
    site.kill("restore", "sample", "--data", data)
    is_whole = (site.folder / data).exists()
    site.clear(*site.rest("partial"))
    if not is_whole:
        site.run("restore", "sample", "--data", data)
    site.judge_data(data)
    return "whole" if is_whole else "nothing"


def was_reached(code: int, complaint: str) -> bool:
    """Whether the command had a connection before the server was lost; without one it ends at once."""
    if code == 69 and "Cannot reach" in complaint:
        return False
    assert code == 0, complaint
    return True


def server_of_export(site: Site) -> str:
    """The command waits for the server, and its moment stays."""
    path = site.name("export")
    if not was_reached(*site.lose_server("export", path, *site.of("p"))):
        assert not (site.folder / path).exists() and site.rest("partial") == []
        return "not reached"
    site.judge_export(path)
    assert site.rest("partial") == []
    site.clear(path)
    return "whole"


def server_of_import(site: Site) -> str:
    project = site.name("imported")
    if not was_reached(*site.lose_server("import", "whole", *site.of(project))):
        assert site.documents(project) == {}
        return "not reached"
    assert site.documents(project) == read((site.folder / "whole.lines").read_text())
    return "whole"


def server_of_backup(site: Site) -> str:
    path = site.name("backup")
    code, complaint = site.lose_server("backup", path, "--address", site.server.address)
    assert code in (0, 69), complaint
    assert site.rest("partial") == [] and (site.folder / path).exists() == (code == 0)
    return take(site, "backup", path, verifies(site, "restore", "--verify-only"), site.judge_backup)


KINDS = [
    exporting,
    exporting_over,
    exporting_lines,
    importing,
    backing_up,
    backing_up_over,
    restoring,
    server_of_export,
    server_of_import,
    server_of_backup,
]
KILLS = int(os.environ.get("HEARTH_TEST_KILLS", str(len(KINDS))))


def test_killed_at_random_moments(tmp_path: Path) -> None:
    seed = int(os.environ.get("HEARTH_TEST_SEED", str(random.randrange(10**6))))
    print(f"HEARTH_TEST_SEED={seed}")
    site = Site(tmp_path, seed)
    try:
        # What is imported, and what is restored; and how long each takes.
        site.measure("export", "whole", *site.of("p"))
        site.measure("import", "whole", *site.of("whole"))
        (tmp_path / "whole.lines").write_text(
            site.run("export", "-", "--format", "ndjson", "--quiet", *site.of("whole"))
        )
        judge(site.documents("whole"))
        site.measure("backup", "sample", "--address", site.server.address)
        site.measure("restore", "sample", "--data", "first")
        site.judge_data("first")
        for number in range(KILLS):
            kind = KINDS[number % len(KINDS)]
            before = sum(writer.commits for writer in site.writers)
            where = f"HEARTH_TEST_SEED={seed}, kill {number}, {kind.__name__}"
            try:
                site.outcomes[f"{kind.__name__}: {kind(site)}"] += 1
            except BaseException as error:
                error.add_note(where)
                raise
            assert all(writer.fault is None for writer in site.writers), (where, site.writers[0].fault)
            while sum(writer.commits for writer in site.writers) == before:
                time.sleep(0.001)
        judge(site.documents("p"))
    finally:
        site.close()
    assert_sound(tmp_path / "hearth-data")
    for outcome, count in sorted(site.outcomes.items()):
        print(f"{count:4} {outcome}")
