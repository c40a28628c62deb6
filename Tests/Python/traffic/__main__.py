"""`python -m traffic --seconds 60`: see README.md."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from support.patience import PATIENCE
from traffic import http1, http2, realtime, streams, web
from traffic.served import Finding, Served

#: How long after the end of a run a lane may need for what is open: only a hang takes so long.
OVERTIME_SECONDS = PATIENCE


def cause(log: str) -> str:
    """The lines of a log that say why a process has ended."""
    start = next((at for word in ("Fatal error", "ERROR: AddressSanitizer", "crashed") if (at := log.find(word)) >= 0), -3_000)
    return log[start:][:3_000]


class Run:
    def __init__(self, seed: int, seconds: float, only: str = "") -> None:
        self.seed = seed
        self.only = only
        self.seconds = seconds
        self.findings: list[str] = []
        self.failed = threading.Event()

    def lanes(self, served: Served) -> list[tuple[str, Any]]:
        kinds: list[tuple[str, Any]] = [("HTTP/2", http2.Lane)] * 4 + [("HTTP/1.1", http1.Lane)] * 2
        kinds += [
            ("WebSocket", realtime.SocketLane),
            ("long polling", realtime.PollLane),
            ("event stream", realtime.EventLane),
            ("WebChannel", web.Lane),
            ("Listen and Write", streams.Lane),
        ]
        chosen = [(number, name, kind) for number, (name, kind) in enumerate(kinds) if self.only in name]
        return [(name, kind(served, self.seed, number)) for number, name, kind in chosen]

    def _drive(self, served: Served, name: str, lane: Any, until: float) -> None:
        try:
            lane.run(until)
        except BaseException as error:  # noqa: BLE001 - reported below
            if not self.failed.is_set():
                trace = "" if isinstance(error, Finding) else traceback.format_exc()
                self.findings.append(f"{served.name}, {name}: {type(error).__name__}: {error}\n{trace}")
                self.failed.set()

    def run(self) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "secure").mkdir()
            servers = [Served(Path(folder), secure=False), Served(Path(folder) / "secure", secure=True)]
            try:
                return self._run(servers)
            finally:
                for served in servers:
                    code = served.program.process.poll()
                    log = served.end()
                    if code is not None:
                        print(f"{served.name}: the process ended with {code}:\n{cause(log)}", flush=True)

    def _run(self, servers: list[Served]) -> bool:
        until = time.monotonic() + self.seconds
        driven = [(served, name, lane) for served in servers for name, lane in self.lanes(served)]
        threads = [
            threading.Thread(target=self._drive, args=(served, name, lane, until), daemon=True) for served, name, lane in driven
        ]
        for thread in threads:
            thread.start()
        while time.monotonic() < until and not self.failed.wait(min(1.0, self.seconds / 10)):
            for served in servers:
                served.sample()
                if not served.is_alive:
                    self.failed.set()
        if self.failed.is_set():
            # Lanes see a process that ends before the operating system has it ended.
            time.sleep(1)
            self.findings[:0] = [f"{served.name}: the process has ended" for served in servers if not served.is_alive]
        for thread in threads:
            thread.join(5 if self.failed.is_set() else max(0.0, until + OVERTIME_SECONDS - time.monotonic()))
            if thread.is_alive() and not self.failed.is_set():
                self.findings.append("a lane does not end")
                self.failed.set()
        if not self.failed.is_set():
            for served in servers:
                try:
                    served.check_end(is_used=not self.only)
                except Finding as finding:
                    self.findings.append(str(finding))
            idle = [f"{served.name}, {name}" for served, name, lane in driven if not lane.counts["whole"]]
            self.findings += [f"{name}: it did nothing" for name in idle]
            if not driven:
                self.findings.append(f"no lane has a name with {self.only!r}")
        print(f"after {time.monotonic() - until + self.seconds:.0f} s")
        self._report(servers, driven)
        return not self.findings

    def _report(self, servers: list[Served], driven: list[tuple[Served, str, Any]]) -> None:
        for served, name, lane in driven:
            counts = ", ".join(f"{value} {key}" for key, value in lane.counts.items())
            print(f"{served.name}, {name}: {counts}")
        for served in servers:
            part = max(1, len(served.resident) // 4)
            quarters = [max(served.resident[start : start + part]) for start in range(0, len(served.resident), part)][:4]
            print(f"{served.name}: resident MiB by quarter of the run: {quarters}")
        for finding in self.findings:
            print(f"FOUND with seed {self.seed}: {finding}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="traffic", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 48))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument(
        "--only", metavar="NAME", default="", help="only lanes whose name contains this; their choices stay the same"
    )
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    sys.exit(0 if Run(options.seed, options.seconds, options.only).run() else 1)


main()
