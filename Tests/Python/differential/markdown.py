"""The known differences as a table for the documentation."""

from __future__ import annotations

from .differences import NOTES, RULES


def table() -> str:
    lines = ["| difference | the emulator | Hearth | source |", "| --- | --- | --- | --- |"]
    lines += [f"| {rule.name} | {rule.emulator} | {rule.hearth} | {rule.source} |" for rule in (*RULES, *NOTES)]
    return "\n".join(lines)
