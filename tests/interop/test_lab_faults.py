"""What goes wrong around `segue-lab run`: a machine that stands still, a disk that is full, somebody who stops it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import build
import lab
import network
import pytest

REASON = network.missing()
pytestmark = [pytest.mark.waits, pytest.mark.skipif(REASON is not None, reason=REASON or "")]

SCENARIO = build.ROOT / "scenarios" / "lab" / "none.toml"
# Nobody moves, and our own programs send from 1 s on, datagrams each 5 ms among it.
STILL = {
    "duration": "3 s",
    "cell.one.present": "0 s..",
    "cell.two.present": "2.9 s..",
    "application.0.command": "[]",
    "application.0.server": "[]",
    "application.0.start": "1 s",
    "application.0.size": "1 MB",
    "application.1.start": "1 s",
    "application.2.start": "1 s",
}


def command(*more: str) -> list[str]:
    """The command line of a run of three seconds in which nothing happens."""
    settings = [f"--set={key}={value}" for key, value in STILL.items()]
    return [str(lab.program()), "run", str(SCENARIO), *settings, *more]


def stopped(at: float, length: float, *more: str) -> tuple[int, dict[str, Any]]:
    """The exit status and the document of a run whose lab stands still from `at` on, by the wall clock."""
    with subprocess.Popen(command("--json", *more), stdout=subprocess.PIPE, text=True) as process:
        time.sleep(at)
        process.send_signal(signal.SIGSTOP)
        time.sleep(length)
        process.send_signal(signal.SIGCONT)
        said = process.communicate(timeout=lab.LONGEST)[0]
    return process.returncode, json.loads(said)


@pytest.mark.alone
def test_a_machine_that_stands_still_is_no_interruption_of_the_network(tmp_path: Path) -> None:
    status, document = stopped(2.5, 0.4, f"--out={tmp_path}")
    emulation = document["lab"]["emulation"]
    assert status == 3, emulation
    assert 0.35 < emulation["longest_stall_s"] < 1.0
    assert emulation["too_late"]
    assert emulation["most_ms"] > 350
    # what stands still with it takes that for the machine's
    machine = emulation["machine"]
    assert machine is None or (machine["longest_ms"] > 350 and machine["most_ms"] < emulation["most_ms"] - 300)


@pytest.mark.alone
def test_a_run_that_was_asleep_all_the_time_says_nothing(tmp_path: Path) -> None:
    status, document = stopped(0.3, 5, f"--out={tmp_path}")
    assert status == 3, document["lab"]["emulation"]


def refused(words: list[str]) -> str:
    """The line on standard error of a run that is refused."""
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=lab.LONGEST)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    return done.stderr


def test_a_message_that_no_memory_holds_is_refused() -> None:
    said = refused(command("--set=application.1.message=1000000 GB"))
    assert "application[1].message: a program has it in its memory: expected 64 MB at most" in said


def kernel_has(congestion_control: str) -> bool:
    """Whether the kernel has it, or loads it."""
    with socket.socket(socket.AF_INET6) as one:
        try:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
        except FileNotFoundError:
            return False
    return True


def test_a_congestion_control_that_the_kernel_lacks_is_refused() -> None:
    there = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    missing = [name for name in ("hybla", "veno") if not kernel_has(name)]
    if not missing:
        pytest.skip("this kernel has hybla and veno")
    said = refused(command(f"--set=tcp.congestion_control={missing[0]}"))
    assert f"tcp.congestion_control: this kernel has no {missing[0]}" in said
    assert there.read_text().split()[0] in said


def test_hanging_up_does_not_end_what_nohup_has_started(tmp_path: Path) -> None:
    words = ["nohup", *command(f"--out={tmp_path}")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(1.5)
        process.send_signal(signal.SIGHUP)
        said, why = process.communicate(timeout=lab.LONGEST)
    assert process.returncode in (0, 3), why
    assert "emulation" in said


def run_of(process: int, *, pid_namespace: int | None = None) -> str:
    """What a run of a process that never was is called, of ours or of another PID namespace."""
    inode = Path("/proc/self/ns/pid").stat().st_ino if pid_namespace is None else pid_namespace
    return f"segue-lab.{process}.1.{inode}.0"


# No process has so high a number.
NOBODY = 99_999_999


def test_a_lab_in_the_environment_of_a_run_that_is_no_more_does_not_end_itself() -> None:
    with tempfile.TemporaryDirectory(prefix="segue-lab-test-") as folder:
        Path(folder).chmod(0o755)
        own = shutil.copy(lab.program(), folder)
        scenario = shutil.copy(SCENARIO, folder)
        user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        # a shell has the variable as well; --out is refused, after what was left has been looked for
        words = [
            *user,
            "sh",
            "-c",
            '"$@"; exit $?',
            "sh",
            own,
            "run",
            scenario,
            "--set=duration=2 s",
            "--out=/proc/none",
        ]
        environment = os.environ | {"SEGUE_LAB_RUN": run_of(NOBODY)}
        done = subprocess.run(words, check=False, capture_output=True, text=True, env=environment, timeout=lab.LONGEST)
    assert done.returncode == 2, done
    assert "left" not in done.stderr


def test_namespaces_of_another_pid_namespace_are_left_alone(tmp_path: Path) -> None:
    gone, elsewhere = run_of(NOBODY), run_of(NOBODY, pid_namespace=1)
    for name in (gone, elsewhere):
        subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        done = subprocess.run(command(f"--out={tmp_path}"), check=False, capture_output=True, text=True)
        assert f"removed {gone}," in done.stderr
        assert [(network.NETNS / name).exists() for name in (gone, elsewhere)] == [False, True]
    finally:
        for name in (gone, elsewhere):
            lab.delete(name)


def test_programs_end_with_their_run_wherever_they_have_gone(tmp_path: Path) -> None:
    gone = "setsid unshare -n sleep 61.75 & hop() { (sleep 0.01; hop) & }; hop; sleep 61.5 & sleep 1"
    words = command(f"--out={tmp_path}", f"--set=application.0.command={json.dumps(['sh', '-c', gone])}")
    subprocess.run(words, check=False, capture_output=True, timeout=lab.LONGEST)
    left = [path.parent.name for path in Path("/proc").glob("[0-9]*/environ") if of_a_run(path)]
    assert (tmp_path / "app0-client.out").exists()
    assert left == []


def of_a_run(environ: Path) -> bool:
    """Whether a process belongs to a run whose process is no more."""
    try:
        variables = environ.read_bytes().split(b"\0")
    except OSError:
        return False
    runs = [
        one.removeprefix(b"SEGUE_LAB_RUN=segue-lab.")
        for one in variables
        if one.startswith(b"SEGUE_LAB_RUN=segue-lab.")
    ]
    return any(not Path(f"/proc/{int(run.split(b'.')[0])}").exists() for run in runs)


def test_a_reader_who_has_had_enough_does_not_hide_a_condition_that_fails(tmp_path: Path) -> None:
    for form in ([], ["--json"]):
        words = command(f"--out={tmp_path}", "--set=duration=1.5 s", "--assert=handovers > 99", *form)
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            process.stdout.close()
            assert process.wait(timeout=lab.LONGEST) in (1, 3)


def test_without_threads_there_is_one_line(tmp_path: Path) -> None:
    # no thread can have so large a stack
    environment = os.environ | {"RUST_MIN_STACK": str(1 << 47)}
    done = subprocess.run(command(f"--out={tmp_path}"), check=False, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "a thread: Resource temporarily unavailable" in done.stderr or "a thread: Cannot allocate" in done.stderr


def test_a_full_disk_is_said_and_is_no_wrong_input(tmp_path: Path) -> None:
    small = 'mount -t tmpfs -o size=64k tmpfs "$0" && exec "$@"'
    words = ["unshare", "--mount", "sh", "-c", small, str(tmp_path), *command(f"--out={tmp_path}")]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=lab.LONGEST)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert ".pcapng: No space left on device" in done.stderr


def test_a_pipe_in_the_place_of_an_output_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "app1-client.out")
    done = subprocess.run(
        command(f"--out={tmp_path}"), check=False, capture_output=True, text=True, timeout=lab.LONGEST
    )
    assert done.returncode in (1, 2)
    assert done.stderr.endswith("app1-client.out: is a pipe: expected a file, or nothing there\n")


def test_a_run_that_is_interrupted_leaves_no_folder_that_nobody_asked_for(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command(), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + lab.SOON
        while not list(tmp_path.glob("segue-lab.*/app*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=lab.LONGEST)
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []
