"""Commands and files over a real OpenSSH."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from recipes_orchestration.errors import ConfigError, ProviderError, Unreachable
from recipes_orchestration.places.slurm import files_over_ssh
from recipes_orchestration.places.slurm.ssh_shell import SshShell, needs_a_person
from recipes_orchestration.rehearsal.slurm_site import HOST, SlurmSite


@pytest.fixture
def shell(ssh_site: SlurmSite) -> SshShell:
    return SshShell("cluster", HOST, ssh_site.ssh_config)


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def content(folder: Path) -> dict[str, bytes]:
    return {
        each.relative_to(folder).as_posix(): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file()
    }


def test_arguments_and_input_arrive_as_they_are(shell: SshShell):
    assert shell.run(["printf", "%s|", "a b", "c'd", "*", "$HOME", "", "n\nl"]).out == (
        "a b|c'd|*|$HOME||n\nl|"
    )
    assert shell.run(["cat"], "a'b\n$x `y` \\\nlast").out == "a'b\n$x `y` \\\nlast\n"


def test_a_commands_own_255_is_not_taken_for_the_connections(shell: SshShell):
    assert [shell.run(["sh", "-c", f"exit {code}"]).code for code in (0, 3, 255)] == [0, 3, 254]


def test_what_start_files_print_is_left_out(shell: SshShell, monkeypatch: pytest.MonkeyPatch):
    run = files_over_ssh.finished

    def noisy(argv: list[str], stdin: str, timeout: float):
        return run(argv, "echo Welcome to the cluster\n" + stdin, timeout)

    monkeypatch.setattr("recipes_orchestration.places.slurm.ssh_shell.finished", noisy)
    assert shell.run(["echo", "words"]).out == "words\n"


def test_all_calls_share_one_connection(shell: SshShell):
    assert not shell.is_open()
    first = shell.run(["sh", "-c", "echo $SSH_CONNECTION"]).out
    assert shell.is_open()
    assert shell.run(["sh", "-c", "echo $SSH_CONNECTION"]).out == first


def test_a_connection_is_shared_where_the_users_configuration_says_nothing(
    ssh_site: SlurmSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert ssh_site.ssh_config is not None
    plain = tmp_path / "config"
    lines = ssh_site.ssh_config.read_text().split("\n")
    plain.write_text("\n".join(line for line in lines if "Control" not in line))
    path = ssh_site.folder / "%C"
    monkeypatch.setattr("recipes_orchestration.places.slurm.ssh_shell.OWN_CONTROL_PATH", str(path))
    shell = SshShell("cluster", HOST, plain)
    assert shell.run(["true"]).code == 0
    assert shell.is_open()
    assert len([each for each in ssh_site.folder.iterdir() if each.is_socket()]) == 1
    ssh = ["ssh", "-F", plain, "-o", f"ControlPath={path}", "-O", "exit", HOST]
    subprocess.run(ssh, check=True, capture_output=True)
    too_long = ssh_site.folder / ("long" * 10) / "%C"
    monkeypatch.setattr(
        "recipes_orchestration.places.slurm.ssh_shell.OWN_CONTROL_PATH", str(too_long)
    )
    with pytest.raises(ConfigError, match="Set a shorter ControlPath"):
        SshShell("cluster", HOST, plain).run(["true"])


def test_a_command_cut_off_is_not_known_to_have_failed(shell: SshShell, ssh_site: SlurmSite):
    shell.run(["true"])
    script = "echo begins; kill -9 $(ps -o ppid= -p $(ps -o ppid= -p $$))"
    with pytest.raises(ProviderError, match="what it did is not known") as cut:
        shell.run(["sh", "-c", script])
    assert not isinstance(cut.value, Unreachable)


def test_a_command_that_takes_too_long_is_not_known_to_have_failed(shell: SshShell):
    with pytest.raises(ProviderError, match="took longer than 1 s"):
        shell.run(["sleep", "20"], timeout=1)


def test_a_host_that_is_not_there_is_unreachable(tmp_path: Path):
    config = tmp_path / "config"
    config.write_text("Host gone\n  HostName 127.0.0.1\n  Port 9\n  ControlPath none\n")
    shell = SshShell("cluster", "gone", config)
    with pytest.raises(Unreachable, match=r"cluster: gone cannot be reached: .*refused") as gone:
        shell.run(["true"])
    assert not gone.value.connect
    with pytest.raises(Unreachable, match="cannot be reached") as gone:
        shell.put(tmp_path, "/tmp/nothing", ["config"])
    assert not gone.value.connect


def test_a_configuration_that_ssh_does_not_take_is_said_to_be_one(tmp_path: Path):
    config = tmp_path / "config"
    config.write_text("NoSuchOption yes\n")
    with pytest.raises(ConfigError, match="does not take its configuration"):
        SshShell("cluster", "somewhere", config).run(["true"])


@pytest.mark.parametrize(
    "words",
    [
        "alice@cluster: Permission denied (publickey,keyboard-interactive).",
        "Host key verification failed.",
        "Received disconnect from 1.2.3.4 port 22:2: Too many authentication failures",
    ],
)
def test_what_only_a_person_can_answer_is_known(words: str):
    assert needs_a_person(words)
    assert not needs_a_person("ssh: connect to host cluster port 22: Connection timed out")


def test_a_second_factor_is_asked_for_once(second_factor_site: SlurmSite, tmp_path: Path):
    shell = SshShell("cluster", HOST, second_factor_site.ssh_config)
    words = "cluster: the connection is gone; type your second factor: recipes connect cluster"
    for ask in (
        lambda: shell.run(["true"]),
        lambda: shell.put(tmp_path, "/tmp/nothing", ["a"]),
        lambda: shell.get("/tmp/nothing", tmp_path, ["a"]),
    ):
        with pytest.raises(Unreachable) as gone:
            ask()
        assert (str(gone.value), gone.value.connect) == (words, True)
    connect(shell, second_factor_site)
    assert shell.is_open()
    assert shell.run(["echo", "here"]).out == "here\n"
    write(tmp_path, {"a": b"1"})
    there = second_factor_site.home / "there"
    there.mkdir()
    shell.put(tmp_path, str(there), ["a"])
    assert content(there) == {"a": b"1"}
    second_factor_site.drop_connections()
    with pytest.raises(Unreachable, match="type your second factor"):
        shell.run(["true"])


def connect(shell: SshShell, site: SlurmSite) -> None:
    """As a person does, whose second factor the site's own program types."""
    subprocess.run(
        shell.connect_argv(),
        env=os.environ | {"SSH_ASKPASS": str(site.askpass), "SSH_ASKPASS_REQUIRE": "force"},
        check=True,
        timeout=20,
        stdin=subprocess.DEVNULL,
    )


FILES = {"pages/a.bin": b"a" * 300_000, "pages/b 'c$.bin": os.urandom(5_000), "code/x/m.py": b"1"}


@pytest.fixture(params=["rsync", "sftp"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With rsync, and where there is none."""
    if request.param == "sftp":
        monkeypatch.setattr(files_over_ssh, "_RSYNC", "no-rsync-here")
    return request.param


def test_files_are_sent_as_they_are_and_no_others(shell: SshShell, tmp_path: Path, way: str):
    here, there = tmp_path / "here", tmp_path / "the 're"
    write(here, FILES | {"pages/other": b"2"})
    there.mkdir()
    shell.put(here, str(there), ["pages/a.bin", "pages/b 'c$.bin", "code/x"])
    assert content(there) == FILES


def test_what_is_there_is_not_sent_again(
    shell: SshShell, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
):
    here, there = tmp_path / "here", tmp_path / "there"
    write(here, FILES)
    there.mkdir()
    shell.put(here, str(there), list(FILES))
    before = {each: each.stat().st_ino for each in there.rglob("*")}
    counted: list[str] = []
    run = files_over_ssh.finished

    def counting(argv: list[str], stdin: str, timeout: float):
        done = run(
            [*argv[:1], "--stats", *argv[1:]] if argv[0] == "rsync" else argv, stdin, timeout
        )
        counted.append(done.out if argv[0] == "rsync" else argv[0])
        return done

    monkeypatch.setattr(files_over_ssh, "finished", counting)
    shell.put(here, str(there), list(FILES))
    assert {each: each.stat().st_ino for each in there.rglob("*")} == before
    if way == "rsync":
        assert "Number of regular files transferred: 0\n" in counted[0]
        assert "Literal data: 0 bytes\n" in counted[0]
    else:
        assert counted == []


def test_a_file_that_was_cut_off_is_sent_to_its_end(shell: SshShell, tmp_path: Path, way: str):
    here, there = tmp_path / "here", tmp_path / "there"
    write(here, FILES)
    half = FILES["pages/a.bin"][:100_000]
    cut = "pages/.rsync-partial/a.bin" if way == "rsync" else "pages/a.bin.part"
    write(there, {cut: half, "pages/b 'c$.bin": b"another one"})
    shell.put(here, str(there), list(FILES))
    assert content(there) == FILES


@pytest.mark.parametrize("way", ["sftp"], indirect=True)
def test_what_came_otherwise_than_it_was_sent_gets_no_name(
    shell: SshShell, tmp_path: Path, way: str
):
    here, there = tmp_path / "here", tmp_path / "there"
    write(here, FILES)
    write(there, {"pages/a.bin.part": b"x" * 100_000})  # of another file
    with pytest.raises(Unreachable, match="otherwise than they were sent"):
        shell.put(here, str(there), list(FILES))
    assert not (there / "pages" / "a.bin").exists()
    shell.put(here, str(there), list(FILES))
    assert content(there) == FILES


def test_files_are_fetched_and_no_links(shell: SshShell, tmp_path: Path, way: str):
    here, there = tmp_path / "here", tmp_path / "the 're"
    write(there, FILES)
    (there / "link").symlink_to("/etc/passwd")
    shell.get(str(there), here, ["pages/a.bin", "pages/b 'c$.bin", "nothing", "link"])
    assert content(here) == {name: FILES[name] for name in ("pages/a.bin", "pages/b 'c$.bin")}


def test_a_folder_that_is_not_there_gives_nothing(shell: SshShell, tmp_path: Path, way: str):
    shell.get(str(tmp_path / "none"), tmp_path / "here", ["a"])
    assert content(tmp_path / "here") == {}


def test_a_folder_is_removed_with_what_is_in_it(shell: SshShell, tmp_path: Path):
    write(tmp_path / "a 'b", {"c/d": b"1"})
    shell.remove(str(tmp_path / "a 'b"))
    shell.remove(str(tmp_path / "a 'b"))
    assert not (tmp_path / "a 'b").exists()
