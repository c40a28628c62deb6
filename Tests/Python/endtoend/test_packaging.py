"""What a release is made of: the version, health checks, completions, the manual page, the unit, the archive, the package.

Packages are made of the program under test, as `make release` and `make deb` do, without a build.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import tarfile
from pathlib import Path

import pytest

from endtoend.test_guide_secured import certificate
from support.patience import PATIENCE
from support.program import BINARY, environment_of_a_child, program

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

ROOT = Path(__file__).parents[3]
VERSION = re.search(r'string = "([^"]+)"', (ROOT / "Core/Model/HearthVersion.swift").read_text())[1]  # type: ignore[index]
MACHINE = platform.machine()
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(MACHINE, MACHINE)


def run(*words: str | Path, folder: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=folder, env=environment_of_a_child(variables), capture_output=True, text=True, timeout=PATIENCE
    )


def hearth(*words: str, folder: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(Path(BINARY).resolve(), *words, folder=folder, **variables)


def printed(*words: str | Path) -> str:
    ended = run(*words)
    assert (ended.returncode, ended.stderr) == (0, ""), words
    return ended.stdout


def needs(tool: str) -> None:
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")


def packaged(kind: str, output: Path) -> None:
    """Makes the files of a release, as of a commit that is known."""
    libraries = run("readelf", "-d", BINARY).stdout
    if "libswiftCore.so" in libraries:
        pytest.skip("the program under test is no release build")
    ended = run("Tools/scripts/package.sh", kind, BINARY, output, HEARTH_COMMIT="abcdef123456", SOURCE_DATE_EPOCH="1700000000")
    assert ended.returncode == 0, ended.stderr


class TestVersion:
    def test_a_build_has_the_version_and_a_release_the_commit(self, tmp_path: Path) -> None:
        assert printed(BINARY, "--version") == printed(BINARY, "version") == f"hearth {VERSION}\n"
        packaged("program", tmp_path / "hearth")
        assert printed(tmp_path / "hearth", "--version") == f"hearth {VERSION} (abcdef123456)\n"
        assert os.path.getsize(tmp_path / "hearth") < os.path.getsize(BINARY)


class TestHealth:
    def test_of_a_server_by_its_settings(self, tmp_path: Path) -> None:
        with program(tmp_path, "--memory", "--no-emulator") as server:
            by_setting = hearth("health", folder=tmp_path, HEARTH_PORT=str(server.port), HEARTH_HOST="*")
            assert (by_setting.returncode, by_setting.stdout, by_setting.stderr) == (0, "ready\n", "")
            by_option = hearth("health", "--address", f"127.0.0.1:{server.port}", folder=tmp_path)
            assert by_option.returncode == 0
        gone = hearth("health", "--address", f"127.0.0.1:{server.port}", folder=tmp_path)
        assert gone.returncode == 69
        assert "Cannot reach" in gone.stderr

    def test_of_a_server_that_lost_its_folder(self, tmp_path: Path) -> None:
        with program(tmp_path) as server:
            (tmp_path / "hearth-data").rename(tmp_path / "elsewhere")
            ended = hearth("health", "--address", f"127.0.0.1:{server.port}", folder=tmp_path)
            assert ended.returncode == 1
            assert ended.stderr.startswith("hearth: The server is not ready (503): ")

    def test_of_an_ipv6_address(self, tmp_path: Path) -> None:
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            pytest.skip("the system has no IPv6")
        with program(tmp_path, "--memory", "--host", "::1") as server:
            by_setting = hearth("health", folder=tmp_path, HEARTH_PORT=str(server.port), HEARTH_HOST="::1")
            assert (by_setting.returncode, by_setting.stderr) == (0, "")
            address = f"[::1]:{server.port}"
            assert hearth("health", "--address", address, folder=tmp_path).returncode == 0
            # Over gRPC.
            what = ("--project", "demo", "--name", "a", "--query", "all=cities", "-o", "a.bundle")
            made = hearth("bundle", "build", "--host", address, *what, folder=tmp_path)
            assert (made.returncode, (tmp_path / "a.bundle").exists()) == (0, True), made.stderr

    def test_with_wrong_settings(self, tmp_path: Path) -> None:
        ended = hearth("health", folder=tmp_path, HEARTH_PORT="many")
        assert (ended.returncode, ended.stderr.startswith("hearth: HEARTH_PORT: ")) == (78, True)

    def test_over_tls(self, tmp_path: Path) -> None:
        certificate(tmp_path)
        with program(tmp_path, "--memory", "--tls-cert", "server.pem", "--tls-key", "server.key") as server:
            address = f"localhost:{server.port}"
            assert hearth("health", "--address", address, "--tls-ca", "server.pem", folder=tmp_path).returncode == 0
            assert hearth("health", "--address", address, "--tls", folder=tmp_path).returncode == 69
            unnamed = hearth("health", folder=tmp_path, HEARTH_TLS_CERT="server.pem", HEARTH_TLS_KEY="server.key")
            assert unnamed.returncode == 64
            assert "--address NAME:PORT --tls" in unnamed.stderr

    def test_of_a_server_that_accepts_and_never_answers(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            words = [Path(BINARY).resolve(), "health", "--address", f"127.0.0.1:{silent.getsockname()[1]}"]
            runs = [
                subprocess.Popen(
                    [*words, *more], cwd=tmp_path, env=environment_of_a_child(), stderr=subprocess.PIPE, text=True
                )
                for more in ([], ["--tls"])
            ]
            try:
                (_, plain), (_, secured) = (run.communicate(timeout=PATIENCE) for run in runs)
            finally:
                for process in runs:
                    process.kill()
        assert [process.returncode for process in runs] == [69, 69]
        assert plain.startswith("hearth: The server did not respond: no answer within 10 seconds"), plain
        assert "did not complete the TLS handshake within 10000 ms" in secured


class TestOutput:
    @pytest.mark.parametrize("words", [["completion", "bash"], ["manual"], ["--version"], ["help"], ["help", "serve"]])
    def test_a_full_disk_is_a_failure(self, words: list[str]) -> None:
        with open("/dev/full", "w") as full:
            ended = subprocess.run([BINARY, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        message = "hearth: Cannot write to standard output: No space left on device.\n"
        assert (ended.returncode, ended.stderr) == (73, message)

    def test_a_closed_output_and_a_reader_that_has_gone_are_none(self) -> None:
        assert run("bash", "-c", '"$0" --version >&-', BINARY).returncode == 0
        # The signal ends it, as it ends other programs in a pipe.
        ended = run("bash", "-c", '"$0" manual | true; exit ${PIPESTATUS[0]}', BINARY)
        assert (ended.returncode in {0, 141}, ended.stderr) == (True, "")

    def test_more_than_the_version_is_wrong_usage(self) -> None:
        assert hearth("--version", "--foo").returncode == 64


class TestCompletions:
    CASES = [
        (["ru"], {"rules"}),
        (["bundle", ""], {"build", "inspect"}),
        (["bundle", "build", "--quer"], {"--query"}),
        (["serve", "--log-format", ""], {"text", "json"}),
        (["serve", "--log-level", "w"], {"warning"}),
        (["serve", "--port", ""], set()),
        (["serve", "--tls-"], {"--tls-cert", "--tls-key"}),
        (["help", "resto"], {"restore"}),
        (["database", "exp"], {"export"}),
        (["rules", "check", "a."], {"a.rules"}),
        (["serve", "--rules", "a."], {"a.rules"}),
        (["serve", "--data", "f"], {"folder"}),
        (["export", "--format", "s"], {"suite"}),
        # The value may be left out.
        (["serve", "--export-on-exit", "--mem"], {"--memory"}),
    ]

    @pytest.fixture(scope="class")
    def folder(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("completed")
        (folder / "a.rules").touch()
        (folder / "file").touch()
        (folder / "folder").mkdir()
        for shell in ("bash", "zsh", "fish"):
            (folder / f"hearth.{shell}").write_text(printed(BINARY, "completion", shell))
        return folder

    @staticmethod
    def bash(folder: Path, words: list[str]) -> set[str]:
        script = 'source ./hearth.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hearth; printf "%s\\n" "${COMPREPLY[@]}"'
        ended = run("bash", "-c", script, "bash", "hearth", *words, folder=folder)
        assert (ended.returncode, ended.stderr) == (0, "")
        return set(ended.stdout.split())

    @pytest.mark.parametrize(("words", "expected"), CASES)
    def test_in_bash(self, folder: Path, words: list[str], expected: set[str]) -> None:
        assert self.bash(folder, words) == expected

    def test_in_bash_with_values_after_an_equals_sign(self, folder: Path) -> None:
        assert self.bash(folder, ["serve", "--log-format", "=", "j"]) == {"json"}
        assert self.bash(folder, ["serve", "--log-format", "="]) == {"text", "json"}

    @pytest.mark.parametrize(("words", "expected"), CASES)
    def test_in_fish(self, folder: Path, words: list[str], expected: set[str]) -> None:
        needs("fish")
        line = " ".join(["hearth", *words])
        script = f"source ./hearth.fish; complete -C '{line}'"
        ended = run("fish", "--no-config", "-c", script, folder=folder, HOME=str(folder))
        assert (ended.returncode, ended.stderr) == (0, "")
        # It adds descriptions, and a slash to folders; where a value is free it has none but offers files.
        found = {candidate.split("\t")[0].rstrip("/") for candidate in ended.stdout.splitlines()}
        assert expected <= found
        assert found - expected == set() or not expected

    def test_zsh_reads_them(self, folder: Path) -> None:
        needs("zsh")
        assert run("zsh", "--no-exec", "hearth.zsh", folder=folder).stderr == ""
        # Found by its name, as packages install it.
        (folder / "functions").mkdir()
        shutil.copy(folder / "hearth.zsh", folder / "functions/_hearth")
        script = "fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -D -u; print ${_comps[hearth]}"
        assert run("zsh", "-f", "-c", script, folder=folder).stdout == "_hearth\n"

    def test_of_a_shell_that_is_none(self) -> None:
        assert hearth("completion", "csh").returncode == 64
        assert hearth("completion").returncode == 64


class TestManual:
    @pytest.fixture(scope="class")
    def page(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        page = tmp_path_factory.mktemp("manual") / "hearth.1"
        page.write_text(printed(BINARY, "manual", "--date", "2026-01-31"))
        return page

    def test_groff_has_no_warnings(self, page: Path) -> None:
        needs("groff")
        ended = run("groff", "-man", "-ww", "-Tutf8", page)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "hearth bundle build (--host ADDRESS:PORT | --data FOLDER) [options]" in re.sub("\x1b\\[[0-9]*m", "", ended.stdout)

    def test_mandoc_has_no_warnings(self, page: Path) -> None:
        needs("mandoc")
        ended = run("mandoc", "-T", "lint", page)
        assert (ended.returncode, ended.stdout) == (0, "")

    def test_the_date(self) -> None:
        assert re.search(r"^\.TH HEARTH 1 \d{4}-\d\d-\d\d ", printed(BINARY, "manual"), re.M)
        assert hearth("manual", "--date", "today").returncode == 64


class TestUnit:
    def test_systemd_takes_it_and_finds_it_closed(self, tmp_path: Path) -> None:
        needs("systemd-analyze")
        unit = tmp_path / "hearth.service"
        content = (ROOT / "packaging/hearth.service").read_text()
        program = Path(BINARY).resolve()
        unit.write_text(content.replace("/usr/bin/hearth", str(program)).replace("Documentation=man:hearth(1)\n", ""))
        ended = run("systemd-analyze", "verify", "--man=no", unit)
        assert (ended.returncode, ended.stderr) == (0, "")
        # The exposure times ten; 0 is closed, 100 open.
        ended = run("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", unit)
        assert ended.returncode == 0, ended.stdout


# The pages of the documentation, beside README.md in both packages.
PAGES = {f"docs/{page.relative_to(ROOT / 'docs')}" for page in (ROOT / "docs").rglob("*.md")}


class TestArchive:
    def test_has_everything_and_is_the_same_again(self, tmp_path: Path) -> None:
        packaged("tarball", tmp_path)
        name = f"hearth-{VERSION}-linux-{MACHINE}"
        file = tmp_path / f"{name}.tar.gz"
        assert run("sha256sum", "--check", f"{name}.tar.gz.sha256", folder=tmp_path).returncode == 0
        with tarfile.open(file) as archive:
            members = {member.name.removeprefix(name): member for member in archive}
        assert {path for path, member in members.items() if member.isfile()} == {f"/{page}" for page in PAGES} | {
            "/hearth", "/hearth.1", "/LICENSE", "/NOTICE", "/README.md", "/CHANGELOG.md", "/systemd/hearth.service",
            "/systemd/hearth.json", "/completions/hearth", "/completions/_hearth", "/completions/hearth.fish",
        }  # fmt: skip
        assert {(member.uid, member.gid, member.mtime) for member in members.values()} == {(0, 0, 1_700_000_000)}
        assert members["/hearth"].mode == 0o755
        linked = set(re.findall(r"\]\((docs/[^)#]+)", (ROOT / "README.md").read_text()))
        assert linked and linked <= PAGES
        first = file.read_bytes()
        packaged("tarball", tmp_path)
        assert file.read_bytes() == first


class TestDebianPackage:
    @pytest.fixture(scope="class")
    def package(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        needs("dpkg-deb")
        output = tmp_path_factory.mktemp("package")
        packaged("deb", output)
        return output / f"hearth_{VERSION}_{ARCHITECTURE}.deb"

    def test_its_fields(self, package: Path) -> None:
        fields = dict(
            line.split(": ", 1) for line in printed("dpkg-deb", "--field", package).splitlines() if line[0] != " "
        )
        assert (fields["Package"], fields["Version"], fields["Architecture"]) == ("hearth", VERSION, ARCHITECTURE)
        needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", BINARY).stdout)
        for library, name in [("libssl.so.3", "libssl3"), ("libcurl.so.4", "libcurl4"), ("libsqlite3.so.0", "libsqlite3-0")]:
            assert library in needed
            assert re.search(rf"(^|, ){name} \(>= [0-9.]+\)", fields["Depends"])
        assert "| libssl3t64" in fields["Depends"]
        assert re.search(r"libc6 \(>= 2\.\d+\)", fields["Depends"])

    def test_any_name_of_a_maintainer(self, package: Path, tmp_path: Path) -> None:
        name = r"A & B/C \1 <ab@example.org>"
        ended = run("Tools/scripts/package.sh", "deb", BINARY, tmp_path, HEARTH_MAINTAINER=name)
        assert ended.returncode == 0, ended.stderr
        assert printed("dpkg-deb", "--field", tmp_path / package.name, "Maintainer") == f"{name}\n"

    def test_its_files(self, package: Path) -> None:
        lines = [line.split() for line in printed("dpkg-deb", "--contents", package).splitlines()]
        files = {words[5].removeprefix("."): (words[0], words[1]) for words in lines if words[0][0] == "-"}
        assert {owner for _, owner in files.values()} == {"root/root"}
        assert files["/usr/bin/hearth"][0] == "-rwxr-xr-x"
        names = {"copyright", "changelog.gz", "NOTICE", "NEWS.gz", "README.md"} | PAGES
        documents = {f"/usr/share/doc/hearth/{name}" for name in names}
        assert files.keys() - documents == {
            "/usr/bin/hearth", "/etc/hearth/hearth.json", "/usr/lib/systemd/system/hearth.service",
            "/usr/share/man/man1/hearth.1.gz", "/usr/share/bash-completion/completions/hearth",
            "/usr/share/zsh/vendor-completions/_hearth", "/usr/share/fish/vendor_completions.d/hearth.fish",
        }  # fmt: skip
        assert documents <= files.keys()

    def test_its_configuration_and_program(self, package: Path, tmp_path: Path) -> None:
        printed("dpkg-deb", "--raw-extract", package, tmp_path)
        assert (tmp_path / "DEBIAN/conffiles").read_text() == "/etc/hearth/hearth.json\n"
        assert printed(tmp_path / "usr/bin/hearth", "--version") == f"hearth {VERSION} (abcdef123456)\n"
        ended = run("md5sum", "--check", "--quiet", "DEBIAN/md5sums", folder=tmp_path)
        assert ended.returncode == 0
        # The file is one that the program takes.
        settings = (tmp_path / "etc/hearth/hearth.json").read_text().replace("/var/lib/hearth", str(tmp_path / "data"))
        (tmp_path / "hearth.json").write_text(settings)
        with program(tmp_path) as server:
            assert server.send("GET", "/readyz")[0] == 200
        assert (tmp_path / "data").is_dir()

    def test_it_is_the_same_again(self, package: Path, tmp_path: Path) -> None:
        packaged("deb", tmp_path)
        assert (tmp_path / package.name).read_bytes() == package.read_bytes()

    def test_a_library_that_is_not_known_ends_the_build(self, tmp_path: Path) -> None:
        packaged("program", tmp_path / "hearth")
        content = (tmp_path / "hearth").read_bytes()
        assert content.count(b"libnghttp2.so.14\0") == 1
        (tmp_path / "other").write_bytes(content.replace(b"libnghttp2.so.14\0", b"libnghttp3.so.14\0"))
        # What prints the manual page must run, so that the loader has to find the library.
        library = printed("ldd", tmp_path / "hearth").split("libnghttp2.so.14 => ")[1].split(" ")[0]
        (tmp_path / "libnghttp3.so.14").symlink_to(library)
        os.chmod(tmp_path / "other", 0o755)
        ended = run("Tools/scripts/package.sh", "deb", tmp_path / "other", tmp_path, LD_LIBRARY_PATH=str(tmp_path))
        assert ended.returncode != 0
        assert "no package is known for libnghttp3.so.14" in ended.stderr
        assert not list(tmp_path.glob("*.deb"))


class TestMaintainerScripts:
    """What dpkg runs, with a data folder of the test. `make check-release` runs them in whole systems."""

    @pytest.fixture
    def data(self, tmp_path: Path) -> Path:
        data = tmp_path / "var/lib/hearth"
        (data / "databases").mkdir(parents=True)
        (data / "databases/file").write_text("data")
        return data

    def run(self, name: str, *words: str, folder: Path) -> str:
        """Returns the output. Programs that change the system are replaced by one that notes its call in `calls`."""
        script = (ROOT / "packaging/debian" / name).read_text()
        assert "/var/lib/hearth" in script or name == "prerm"
        copy = folder / name
        copy.write_text(script.replace("/var/lib/hearth", str(folder / "var/lib/hearth")))
        tools = folder / "tools"
        tools.mkdir(exist_ok=True)
        for tool in ("deb-systemd-helper", "deb-systemd-invoke", "systemctl", "useradd", "chown", "chmod", "install"):
            (tools / tool).write_text(f'#!/bin/sh\necho "{tool} $*" >>"{folder}/calls"\n')
            (tools / tool).chmod(0o755)
        ended = run("sh", copy, *words, folder=folder, PATH=f"{tools}:{os.environ['PATH']}")
        assert (ended.returncode, ended.stderr) == (0, "")
        return ended.stdout

    def calls(self, folder: Path) -> list[str]:
        return (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []

    def test_a_removal_and_a_purge_keep_the_data(self, tmp_path: Path, data: Path) -> None:
        for name, word in [("prerm", "remove"), ("postrm", "remove"), ("prerm", "upgrade"), ("postrm", "upgrade")]:
            assert self.run(name, word, folder=tmp_path) == ""
        assert "was kept" in self.run("postrm", "purge", folder=tmp_path)
        assert (data / "databases/file").read_text() == "data"

    def test_a_purge_removes_an_empty_folder(self, tmp_path: Path, data: Path) -> None:
        shutil.rmtree(data / "databases")
        assert self.run("postrm", "purge", folder=tmp_path) == ""
        assert not data.exists()

    def test_an_installation_makes_a_folder_that_only_the_service_reads(self, tmp_path: Path, data: Path) -> None:
        self.run("postinst", "configure", "", folder=tmp_path)
        calls = self.calls(tmp_path)
        assert f"install -d -o hearth -g hearth -m 700 {data}" in calls
        assert {"chown root:hearth /etc/hearth", "chmod 750 /etc/hearth"} <= set(calls)
        assert "deb-systemd-helper enable hearth.service" in calls

    def test_an_update_leaves_the_rights_of_the_settings(self, tmp_path: Path, data: Path) -> None:
        self.run("postinst", "configure", "0.0.9", folder=tmp_path)
        assert not [call for call in self.calls(tmp_path) if call.startswith(("chown", "chmod"))]
        assert (data / "databases/file").read_text() == "data"
