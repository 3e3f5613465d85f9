"""`signal_process`: an abort hook that ends a process as Ctrl-C or its supervisor would."""

from __future__ import annotations

import os
import signal
import sys

from otel_loopguard.abort.hooks import AbortHook, AbortRequest
from otel_loopguard.options.errors import wrong
from otel_loopguard.policy import PolicyError

_GENTLE = (signal.SIGINT, signal.SIGTERM)
"""Signals that a process can answer by cleaning up. SIGKILL leaves nothing: no telemetry either."""


def signal_process(signum: int = signal.SIGINT, *, pid: int | None = None) -> AbortHook:
    """Return a hook that sends a signal to a process: this one, unless told otherwise.

        LoopGuardSpanProcessor(abort_hooks=[signal_process()])

    SIGINT is Ctrl-C: `KeyboardInterrupt` in the main thread, whatever that is doing, or what the
    application has put in its place (`asyncio.run` cancels its task, servers shut down). SIGTERM is
    what supervisors send: unless the application handles it, the process ends at once, without
    `finally` or `atexit`. Either way all runs of the process end with the one that has tripped, and
    hooks after this one may not be called: put it last. It is sent once for each run that trips.

    Delivered means that the system took the signal. A process that is gone or belongs to somebody
    else is a failure, and so is a signal that this process would not hear: one that it ignores, as
    what shells start in the background does with SIGINT, and SIGTERM without a handler where it is
    process 1, as in a container. In time the system gives the id of a process that is gone to
    another one: name a `pid` only while you know that it is still the one you mean, such as a child
    that you have not waited for.

    Args:
        signum: `signal.SIGINT` or `signal.SIGTERM`.
        pid: the process; the one that the run is in if `None`, after a fork too.

    Raises:
        PolicyError: for another signal, for what is no id of a single process other than process 1,
            and on Windows, where a signal to a process does no more than kill it.

    """
    named: object = pid  # callers without a type checker may name anything
    if sys.platform == "win32":
        raise PolicyError("signal_process: needs a system with signals; Windows has none to send")
    if isinstance(signum, bool) or signum not in _GENTLE:
        expected = "signal.SIGINT or signal.SIGTERM, which a process can clean up after"
        raise wrong("signal_process: signum", expected, signum)
    if pid is not None and (isinstance(named, bool) or not isinstance(named, int) or named <= 1):
        expected = "the id of one process, above 1, or None for this one"
        raise wrong("signal_process: pid", expected, pid)
    wanted = signal.Signals(signum)

    def send(_request: AbortRequest) -> None:
        own = os.getpid()
        receiver = own if pid is None else pid
        if receiver == own and _is_deaf_to(wanted, own):
            remedy = f"set a handler for {wanted.name} in the main thread"
            raise RuntimeError(f"{send.__qualname__}: this process ignores it; {remedy}")
        os.kill(receiver, wanted)

    send.__qualname__ = f"signal_process({wanted.name})"
    return send


def _is_deaf_to(signum: signal.Signals, pid: int) -> bool:
    """Say whether this process ignores a signal; process 1 ignores what it has no handler for."""
    handler = signal.getsignal(signum)
    return handler is signal.SIG_IGN or (handler is signal.SIG_DFL and pid == 1)
