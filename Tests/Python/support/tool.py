"""Runs of the built program's commands."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.program import BINARY, environment_of_a_child


class Tool:
    """A command, with options that each run has."""

    def __init__(self, *command: str, options: Sequence[str] = (), folder: Path | None = None) -> None:
        self.command, self.options, self.folder = command, list(options), folder

    def _arguments(self, words: tuple[str, ...], more: dict[str, Any]) -> dict[str, Any]:
        command = [BINARY, *self.command, *words, *self.options]
        return {"args": command, "cwd": self.folder, "text": True, "env": environment_of_a_child(), **more}

    def start(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            **self._arguments(words, {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more})
        )

    def run(self, *words: str, data: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(**self._arguments(words, {"input": data, "capture_output": True, "timeout": 120}))

    def __call__(self, *words: str, data: str = "") -> str:
        """The output of a run that must succeed."""
        ended = self.run(*words, data=data)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout
