"""`hearth bench` from outside: the output of a short run. The figures themselves are only meaningful on quiet
machines.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.patience import PATIENCE
from support.program import BINARY, environment_of_a_child

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

SIZES = ["--seconds", "0.2", "--documents", "200", "--many", "300", "--large", "1000", "--huge", "2000"]

SVG = "{http://www.w3.org/2000/svg}"


def command(folder: Path, *words: str) -> list[str]:
    return [BINARY, "bench", *SIZES, *words, "--connections", "50", "--folder", str(folder)]


def test_a_run_writes_figures_and_a_picture(tmp_path: Path) -> None:
    workloads = ["commit-32-many", "commit-32-memory", "get-constant", "get-rest", "query-range-huge", "count-huge"]
    workloads += ["memory-after-load", "connections"]
    files = [str(tmp_path / name) for name in ("figures.json", "picture.svg")]
    ended = subprocess.run(
        command(tmp_path, *workloads, "--runs", "2", "--json", files[0], "--svg", files[1]),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment_of_a_child(),
    )
    assert ended.returncode == 0, ended.stderr
    report = json.loads(Path(files[0]).read_text())
    measured = {figure["workload"] for figure in report["figures"] if figure["target"] == "hearth"}
    # A workload includes those that it is compared with.
    assert measured == {*workloads, "commit-32", "get", "query-range-small"}
    for figure in report["figures"]:
        assert len(figure["values"]) == 2
        assert min(figure["values"]) <= figure["median"] <= max(figure["values"])
        # Fifty connections may fit into memory that was already resident.
        assert figure["median"] > 0 or figure["workload"] == "connections"
    bars = {(bar["workload"], bar["beside"]): bar for bar in report["bars"]}
    assert {("get", "get-constant"), ("commit-32-many", "commit-32"), ("count-huge", "limit")} <= set(bars)
    for bar in bars.values():
        assert bar["met"] == (bar["ratio"] >= bar["bar"] > 0)
    picture = ElementTree.parse(files[1]).getroot()
    assert picture.tag == SVG + "svg"
    texts = {element.text for element in picture.iter(SVG + "text")}
    assert {"get", "commit-32-many", "count-huge"} <= texts
    # Nothing is left behind: neither a folder nor a server.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figures.json", "picture.svg"]


def children(process: int) -> list[int]:
    return [int(number) for number in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_what_was_started(tmp_path: Path, sent: signal.Signals) -> None:
    # Ignored signals stay ignored in children: SIGHUP, when the tests were started by nohup.
    if signal.getsignal(sent) == signal.SIG_IGN:
        signal.signal(sent, signal.SIG_DFL)
    running = subprocess.Popen(
        command(tmp_path, "get", "--seconds", "60"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment_of_a_child(),
    )
    deadline = time.monotonic() + PATIENCE
    while not (servers := children(running.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    running.send_signal(sent)
    assert running.wait(PATIENCE) == 130
    for server in servers:
        with pytest.raises(ProcessLookupError):
            os.kill(server, 0)
    assert list(tmp_path.iterdir()) == []
