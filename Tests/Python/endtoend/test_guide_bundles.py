"""The guide's page about bundles: its blocks as they are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.cloud import firestore

from support.patience import PATIENCE
from support.program import BINARY, Program, environment_of_a_child, program
from support.tool import Tool

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

PAGE = (Path(__file__).parents[3] / "docs" / "guide" / "bundles.md").read_text()


def block(language: str, part: str) -> str:
    """The block of a language that has a part."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if part in block]
    return str(found)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Program]:
    with program(tmp_path, "--memory", "--project", "my-project") as started:
        yield started


@pytest.fixture
def db(server: Program, monkeypatch: pytest.MonkeyPatch) -> Iterator[firestore.Client]:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", server.address)
    client = firestore.Client(project="my-project")
    for n in range(60):
        client.document(f"stories/{n:02}").set({"at": n, "title": f"Story {n} – größer"})
    client.document("settings/site").set({"title": "Hearth"})
    yield client
    client.close()


def shell(script: str, server: Program, folder: Path) -> str:
    commands = folder / "bin"
    commands.mkdir(exist_ok=True)
    if not (commands / "hearth").exists():
        (commands / "hearth").symlink_to(Path(BINARY).absolute())
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script.replace("127.0.0.1:8080", server.address)],
        cwd=folder,
        env=environment_of_a_child({"PATH": f"{commands}:{os.environ['PATH']}"}),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_by_the_command(db: firestore.Client, server: Program, tmp_path: Path) -> None:
    listed = shell(block("sh", "bundle build"), server, tmp_path)
    assert "can be loaded" in listed
    assert "latest: 50 documents" in listed
    assert "settings/site" in listed


def test_by_the_server(db: firestore.Client, server: Program, tmp_path: Path) -> None:
    shell(block("sh", "--compressed"), server, tmp_path)
    assert "latest: 50 documents" in Tool("bundle", folder=tmp_path)("inspect", "front-page.bundle")
    headers = shell("curl -sfI http://127.0.0.1:8080/bundles/front-page", server, tmp_path).lower()
    (caching,) = re.findall(r"`(cache-control: [^`]+)`", PAGE)
    assert caching in headers
    (tag,) = re.findall(r'etag: (".+")', headers)
    request = f"curl -so /dev/null -w '%{{http_code}}' -H 'if-none-match: {tag}' http://127.0.0.1:8080/bundles/front-page"
    assert shell(request, server, tmp_path) == "304"


def test_by_googles_library(db: firestore.Client, server: Program, tmp_path: Path) -> None:
    environment = environment_of_a_child(
        {"FIRESTORE_EMULATOR_HOST": server.address, "GOOGLE_CLOUD_PROJECT": "my-project"}
    )
    script = block("python", "FirestoreBundle")
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, check=True, timeout=PATIENCE)
    assert "settings/site" in Tool("bundle", folder=tmp_path)("inspect", "settings.bundle")
    # With stories, whose titles have characters of several bytes.
    script = script.replace("settings", "stories")
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, check=True, timeout=PATIENCE)
    assert "60 (0 missing)" in Tool("bundle", folder=tmp_path)("inspect", "stories.bundle")


def test_what_is_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "page.bundle").write_text("<!doctype html><title>Log in</title>")
    ended = Tool("bundle", folder=tmp_path).run("inspect", "page.bundle")
    assert ended.returncode == 1
    assert "element at byte 0 does not begin with its length" in ended.stderr


def test_another_encoding(db: firestore.Client, server: Program, tmp_path: Path) -> None:
    shell(block("sh", "bundle build"), server, tmp_path)
    content = (tmp_path / "front-page.bundle").read_text()
    (tmp_path / "front-page.bundle").write_bytes(content.encode("latin-1", "replace"))
    ended = Tool("bundle", folder=tmp_path).run("inspect", "front-page.bundle")
    assert ended.returncode == 1
    assert "at byte" in ended.stderr
