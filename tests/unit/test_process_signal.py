"""`signal_process`: what it does to processes, real ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from otel_loopguard import AbortRequest, LoopGuard, Policy, PolicyError, Step, signal_process
from otel_loopguard.abort.hooks import name_of
from tests._tracing import Traced

ROOT = Path(__file__).parents[2]
PATIENT_S = 60.0

AGENT = """
import asyncio, signal, sys, threading, time
from otel_loopguard import Policy, guarded_run, signal_process
from tests._tracing import traced

# What starts tests in the background has its processes ignore the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)

def agent(process, name="scout"):
    with guarded_run(name) as run, process.agent():
        process.work(50)

def tell(process, *words):
    asked = process.total("loopguard.abort.requests")
    print(*words, f"asked={asked:g}", flush=True)
"""
"""The beginning of a program that runs an agent which goes on for long after its trip."""


def ran(program: str) -> tuple[int, str]:
    """Run a program in a process of its own; return how it ended, and what it said."""
    done = subprocess.run(
        [sys.executable, "-c", AGENT + program],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        timeout=PATIENT_S,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def child() -> Generator[subprocess.Popen[str]]:
    """Run a process that waits for a signal."""
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    waiting = f"import signal; {heard}; print(flush=True); signal.pause()"
    with subprocess.Popen(
        [sys.executable, "-c", waiting],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as started:
        assert started.stdout is not None
        started.stdout.readline()
        yield started
        started.kill()


def request() -> AbortRequest:
    guard = LoopGuard(policy=Policy.none(), max_steps=1)
    guard.check(Step(kind="llm"))
    guard.check(Step(kind="llm"))
    report = guard.end()
    assert report.trip is not None
    return AbortRequest(run_id="r", violation=report.trip, report=report)


# ------------------------------------------------------------------------------- this process


def test_an_agent_in_the_main_thread_is_interrupted() -> None:
    code, said = ran("""
with traced() as process:
    process.guard(Policy(max_steps=5), abort_hooks=[signal_process()], abort=())
    try:
        agent(process)
    except KeyboardInterrupt:
        tell(process, "interrupted")
""")

    assert (code, said) == (0, "interrupted asked=1\n")


def test_an_agent_in_another_thread_interrupts_the_main_one() -> None:
    """Threads are not: this one waits for its agent as a pool would, and ends with the process."""
    code, said = ran("""
with traced() as process:
    process.guard(Policy(max_steps=5), abort_hooks=[signal_process()], abort=())
    ended = threading.Event()
    try:  # it may be there before the thread's start is over
        threading.Thread(target=lambda: (agent(process), ended.set()), daemon=True).start()
        while True:
            time.sleep(20)
    except KeyboardInterrupt:
        tell(process, "interrupted")
    print("the agent went on:", ended.wait(20))
""")

    assert (code, said) == (0, "interrupted asked=1\nthe agent went on: True\n")


def test_an_event_loop_is_left_as_by_ctrl_c() -> None:
    code, said = ran("""
async def main():
    try:
        while True:
            agent(process)
            await asyncio.sleep(0)
    finally:
        tell(process, "cleaned up")

with traced() as process:
    process.guard(Policy(max_steps=5), abort_hooks=[signal_process()], abort=())
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        print("interrupted")
""")

    assert code == 0
    assert said.endswith("interrupted\n")
    assert "cleaned up asked=1" in said


def test_what_handles_the_signal_decides() -> None:
    code, said = ran("""
heard = []
signal.signal(signal.SIGTERM, lambda number, frame: heard.append(signal.Signals(number).name))
with traced() as process:
    stop = signal_process(signal.SIGTERM)
    process.guard(Policy(max_steps=5), abort_hooks=[stop], abort=())
    agent(process)
    tell(process, *heard)
""")

    assert (code, said) == (0, "SIGTERM asked=1\n")


def test_without_a_handler_sigterm_ends_the_process_at_once() -> None:
    code, said = ran("""
with traced() as process:
    stop = signal_process(signal.SIGTERM)
    process.guard(Policy(max_steps=5), abort_hooks=[lambda _: print("first", flush=True), stop])
    try:
        agent(process)
    finally:
        tell(process, "cleaned up")
""")

    assert (code, said) == (-signal.SIGTERM, "first\n")


def test_a_signal_that_is_ignored_is_a_failure(
    process: Traced, caplog: pytest.LogCaptureFixture
) -> None:
    process.guard(Policy.none().with_limits(max_steps=1), abort_hooks=[signal_process()], abort=())
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with process.agent():
            process.work(1)
    finally:
        signal.signal(signal.SIGINT, before)

    name = "signal_process(SIGINT)"
    assert process.total("loopguard.aborts", abort__hook=name, abort__result="failed") == 1
    assert f"{name}: this process ignores it; set a handler for SIGINT in" in caplog.text


def test_process_1_ignores_what_it_has_no_handler_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container. Nothing is sent here: the real process 1 would hear it."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "getpid", lambda: 1)

    def kill(pid: int, signum: int) -> None:
        sent.append((pid, signum))

    monkeypatch.setattr(os, "kill", kill)
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with pytest.raises(RuntimeError, match="this process ignores it"):
            signal_process(signal.SIGTERM)(request())
        assert sent == []
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        signal_process(signal.SIGTERM)(request())
        assert sent == [(1, signal.SIGTERM)]
    finally:
        signal.signal(signal.SIGTERM, before)


# ------------------------------------------------------------------------------- another process


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_another_process_is_ended(
    process: Traced, child: subprocess.Popen[str], signum: signal.Signals
) -> None:
    hook = signal_process(signum, pid=child.pid)
    process.guard(Policy.none().with_limits(max_steps=1), abort_hooks=[hook], abort=())
    with process.agent():
        process.work(2)

    # Python ends itself by the same signal once KeyboardInterrupt has left it.
    assert child.wait(PATIENT_S) == -signum
    name = f"signal_process({signum.name})"
    assert process.total("loopguard.aborts", abort__hook=name, abort__result="ok") == 1


def test_what_this_process_ignores_another_may_hear(child: subprocess.Popen[str]) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        signal_process(pid=child.pid)(request())
    finally:
        signal.signal(signal.SIGINT, before)
    assert child.wait(PATIENT_S) == -signal.SIGINT


def test_a_process_that_is_gone_is_a_failure_that_is_counted(
    process: Traced, child: subprocess.Popen[str]
) -> None:
    child.kill()
    child.wait(PATIENT_S)
    hook = signal_process(pid=child.pid)
    with pytest.raises(ProcessLookupError):
        hook(request())
    process.guard(Policy.none().with_limits(max_steps=1), abort_hooks=[hook], abort=())
    with process.agent():
        process.work(1)

    name = "signal_process(SIGINT)"
    assert process.total("loopguard.aborts", abort__hook=name, abort__result="failed") == 1


# ------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("signum", [0, signal.SIGKILL, signal.SIGHUP, 99, True, "SIGINT"])
def test_only_signals_that_a_process_can_clean_up_after(signum: Any) -> None:
    with pytest.raises(PolicyError, match="signum: expected signal"):
        signal_process(signum)


@pytest.mark.parametrize("pid", [0, 1, -1, -4711, True, 1.5, "4711"])
def test_only_single_processes(pid: Any) -> None:
    with pytest.raises(PolicyError, match=f"pid: expected the id of one process.*got {pid!r}"):
        signal_process(pid=pid)


def test_only_where_there_are_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(PolicyError, match="needs a system with signals"):
        signal_process()


def test_its_name_has_no_process_in_it() -> None:
    assert name_of(signal_process(15, pid=4711)) == "signal_process(SIGTERM)"
