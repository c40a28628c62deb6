"""The guide's page on a server for others: its configuration, secrets and client, as they are on the page.

Only the port and the folders are exchanged, and the certificate is one for localhost, which its clients trust.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from endtoend.test_guide_secured import certificate
from support.patience import PATIENCE
from support.program import BINARY, Program, environment_of_a_child, program

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

PAGE = (Path(__file__).parents[3] / "docs/guide/deploying.md").read_text()
RULES = (Path(__file__).parents[3] / "docs/guide/security-rules.md").read_text()


def block(page: str, language: str, part: str) -> str:
    (found,) = [text for text in re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S) if part in text]
    return str(found)


def rules() -> str:
    found = re.search(r"^```\n(rules_version.*?)^```$", RULES, re.M | re.S)
    assert found
    return found[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deployed")
    certificate(folder)
    secrets = block(PAGE, "sh", "umask")
    subprocess.run(["bash", "-ec", secrets], cwd=folder, check=True, timeout=PATIENCE, stderr=subprocess.DEVNULL)
    (folder / "firestore.rules").write_text(rules())
    settings = json.loads(block(PAGE, "json", "tlsCert"))
    assert (settings.pop("host"), settings.pop("port"), settings.pop("data")) == ("*", 443, "/var/lib/hearth")
    settings["backups"]["folder"] = "backups"
    (folder / "hearth.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Program]:
    with program(folder) as started:
        yield started


def ask(server: Program, folder: Path, path: str, secret: str | None = None) -> int:
    context = ssl.create_default_context(cafile=str(folder / "server.pem"))
    connection = http.client.HTTPSConnection("localhost", server.port, timeout=PATIENCE, context=context)
    token = (folder / f"{secret}.secret").read_text().strip() if secret else None
    connection.request("GET", path, headers={"authorization": f"Bearer {token}"} if token else {})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_secrets_are_for_their_owner_alone(folder: Path) -> None:
    assert {path.stat().st_mode & 0o777 for path in folder.glob("*.secret")} == {0o600}


def test_the_client_of_a_server(server: Program, folder: Path) -> None:
    variables = {
        "DATABASE_ADDRESS": f"localhost:{server.port}",
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(folder / "server.pem"),
    }
    ended = subprocess.run(
        [sys.executable, "-c", block(PAGE, "python", "api_endpoint")],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**environment_of_a_child(), **variables},
    )
    assert ended.stdout == "{'works': True}\n", ended.stderr


def test_who_may_look_after_it(server: Program, folder: Path) -> None:
    assert ask(server, folder, "/readyz") == 200
    assert ask(server, folder, "/metrics") in (401, 403)
    assert ask(server, folder, "/metrics", "monitoring") == 200
    assert ask(server, folder, "/metrics", "backend") == 403
    documents = "/v1/projects/my-app/databases/(default)/documents"
    assert ask(server, folder, f"{documents}/users/eva") == 403
    assert ask(server, folder, f"{documents}/checks/first", "monitoring") == 200
