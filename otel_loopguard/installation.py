"""One guard for the whole process, with one line: `otel_loopguard.install()`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypedDict

from otel_loopguard.attachment import Attachment
from otel_loopguard.forks import renew_in_children
from otel_loopguard.integrations import attach
from otel_loopguard.options.frameworks import integrations_of
from otel_loopguard.processor import LoopGuardSpanProcessor

if TYPE_CHECKING:
    import os

    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from typing_extensions import Unpack

    from otel_loopguard.abort.hooks import AbortHook
    from otel_loopguard.dialects import Dialect
    from otel_loopguard.options.kinds import AbortException, BuiltIn
    from otel_loopguard.policy import Mode, Policy


class GuardOptions(TypedDict, total=False):
    """What `LoopGuardSpanProcessor` takes besides the policy; said there."""

    mode: Mode | None
    abort_hooks: Iterable[AbortHook]
    abort: Iterable[BuiltIn] | None
    abort_exception: AbortException | None
    meter_provider: MeterProvider | None
    logger_provider: LoggerProvider | None
    log_events: bool | None
    hook_timeout_s: float | None
    dialects: Iterable[Dialect] | None
    clock: Callable[[], float]


class _Installed:
    """The attachment of the guard that was installed last."""

    attachment: Attachment | None = None
    lock = threading.RLock()


renew_in_children(_Installed, "lock")


def install(
    policy: Policy | str | os.PathLike[str] | None = None,
    *,
    integrations: Iterable[str] | None = None,
    **options: Unpack[GuardOptions],
) -> LoopGuardSpanProcessor:
    """Watch the global tracer provider of the process, and every one that is made later.

        otel_loopguard.install(mode="enforce")

    Takes what `LoopGuardSpanProcessor` takes, and returns the guard. The last word counts: what was
    installed before, be it by `opentelemetry-instrument`, is taken off. Exporters stay as they are.
    For a provider that is there and is not the global one use `provider.add_span_processor(guard)`.

    `integrations` are the names of those that are attached once their frameworks are imported, `()`
    for none. If `None`: `OTEL_LOOPGUARD_INTEGRATIONS`, else all.

    Raises:
        PolicyError: for an option that cannot be followed; what was installed before stays.

    """
    with _Installed.lock:
        named = integrations_of(integrations, "integrations")
        guard = LoopGuardSpanProcessor(policy, **options)
        uninstall()
        _Installed.attachment = attachment = Attachment(guard)
        attachment.watch_new_ones()  # first, or one that is made meanwhile is missed
        attachment.attach()
    attach(guard, guard.integrations if named is None else named)
    return guard


def uninstall() -> None:
    """Take the installed guard off, if there is one: nothing is watched or refused any more."""
    with _Installed.lock:
        attachment, _Installed.attachment = _Installed.attachment, None
        if attachment is not None:
            attachment.take_off()
