"""The known differences as a table for the documentation."""

from __future__ import annotations

from .differences import NOTES, RULES
from .rules import Note, Rule


def table() -> str:
    lines = ["| difference | the emulator | Hearth | source |", "| --- | --- | --- | --- |"]
    known: list[Rule | Note] = [*RULES, *NOTES]
    lines += [f"| {rule.name} | {rule.emulator} | {rule.hearth} | {rule.source} |" for rule in known]
    return "\n".join(lines)
