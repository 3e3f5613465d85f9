"""What came out of the steps of a run, as its rules see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from otel_loopguard.canonical import UNKNOWN, canonical
from otel_loopguard.detectors import Facts
from otel_loopguard.engine.agent_rules import AgentRules
from otel_loopguard.engine.memory import KEPT, Memory
from otel_loopguard.engine.open_steps import OpenStep
from otel_loopguard.engine.readings import (
    UNREADABLE,
    identify,
    signature_of,
    state_after,
    turn_of,
)
from otel_loopguard.pricing import Pricing, count_of, dollars_of, input_tokens_of
from otel_loopguard.settings import Settings
from otel_loopguard.steps import Step
from otel_loopguard.values.answers import found_nothing
from otel_loopguard.values.failures import error_in

_NEVER = (None, None, False)
_SMALL = (1 << 60) - 1
"""Identities that are kept for long have no more bits: Python stores them in less space."""

SHORT = 200
"""Bytes of a result up to which it counts as short."""


class Outcomes:
    """Reads outcomes of steps, and remembers those of tool calls. Everything in it is bounded."""

    __slots__ = (
        "_memory",
        "_pricing",
        "_usage",
        "_work",
        "_world",
        "_worlds",
        "failed_callbacks",
        "metered",
        "repeated",
        "unpriced",
    )

    def __init__(self, settings: Settings, pricing: Pricing) -> None:
        self._memory = Memory(settings.masking)
        self._usage = settings.usage
        self._pricing = pricing
        self._worlds = 0
        """How often a tool has changed the state of the world."""
        self._world: int | None = None
        self.metered = 0
        """How many steps have reported what they used."""
        self.failed_callbacks = 0
        """How often an application failed to say what state there is."""
        self._work = 0
        """How often a tool call of any agent has brought something new, hand-overs left out."""
        self.repeated = 0
        """Tool calls that brought nothing that their agent had not had before."""
        self.unpriced = 0
        """Model calls that came back and whose cost is not known."""

    def has(self, call: int) -> bool:
        """Say whether a call whose result stayed unknown was made before."""
        return self._memory.has(call)

    def forget(self) -> None:
        """Forget all outcomes."""
        self._memory.forget()
        self.repeated = self._work = 0

    def of(
        self, opened: OpenStep, step: Step, elapsed_s: float, silent_s: float
    ) -> tuple[Facts, bool | None]:
        """Return what is known of a step that has come back, and whether it finishes the run.

        An agent or a custom step does not say that.
        """
        if opened.kind == "tool":
            facts, ends = self.of_tool(opened, step, elapsed_s)
            return self._with_words(facts, opened, step, silent_s), ends
        facts = self._of_other(opened, step, elapsed_s, silent_s)
        if opened.kind != "llm":
            return facts, None
        return facts, facts.turn is not None and facts.turn.final

    def _of_other(self, opened: OpenStep, step: Step, elapsed_s: float, silent_s: float) -> Facts:
        """Return what is known of a step that is no tool call, now that it has come back.

        What an agent reports as used is the sum of what is below it: it counts where nothing has
        reported any since it began, or before where it is not known what is inside it.
        """
        cost_usd = self._pricing.cost_of(step)
        tokens = input_tokens_of(step, self._usage) or 0, count_of(step.output_tokens)
        if opened.kind == "agent":
            known = self.metered != opened.metered
            tokens, cost_usd = ((0, 0), None) if known else (tokens, cost_usd)
        else:
            self.unpriced += cost_usd is None and opened.kind == "llm"
        self.metered += any(tokens) or cost_usd is not None
        return Facts(
            opened.kind,
            opened.name,
            opened.owner.key,
            elapsed_s,
            None,
            pending=False,
            failed=step.error is not None,
            error=None if step.error is None else signature_of(step.error),
            input_tokens=tokens[0],
            output_tokens=tokens[1],
            cost_usd=cost_usd or 0.0,
            silent_s=silent_s,
            turn=turn_of(step) if opened.kind == "llm" else None,
            spoken=opened.spoken,
            unsure=opened.unsure and step.spoken is False,
        )

    def _with_words(self, facts: Facts, opened: OpenStep, step: Step, silent_s: float) -> Facts:
        """Add what only some policies need to know of a tool call that has come back."""
        result = canonical(step.result)
        answered = None if result is UNKNOWN or len(result) > KEPT else result
        asked = opened.identity[2]
        return msgspec.structs.replace(facts, silent_s=silent_s, asked=asked, answered=answered)

    def of_tool(self, opened: OpenStep, step: Step, elapsed_s: float) -> tuple[Facts, bool]:
        """Return what is usually known of a tool call, and whether it ends the run."""
        memory, owner = self._memory, opened.owner
        options = owner.options_of(opened.name) if owner.tools else None
        call, _, arguments = opened.identity
        if call is None and opened.rules.compares:
            named = (
                step
                if step.name == opened.name
                else msgspec.structs.replace(step, name=opened.name)
            )
            opened.identity = call, _, arguments = identify(named, options, owner.key)
        result = canonical(step.result)
        error = step.error
        if error is None and result is not UNKNOWN:
            error = error_in(result, () if options is None else options.error_patterns)
        signature = outcome = answer = None
        near = familiar = nothing = short = False
        world = 0 if options is not None and options.writes else self._worlds
        before, said, hands_over = owner.answers.get(opened.name, _NEVER)
        if hands_over and self._work != owner.work:
            world = hash((world, self._work - owner.work))  # what others did in between counts
        if error is not None:
            signature = signature_of(error)
            outcome = None if call is None else hash((call, "failed", signature, world)) & _SMALL
        elif call is not None and result is not UNKNOWN:
            value = hash(result)
            answer = hash((owner.key, opened.name, value))
            short = len(result) <= SHORT
            nothing = short and found_nothing(result)
            call, outcome, near, familiar = memory.recall(
                call, hash((call, value, world)) & _SMALL, answer, arguments, result, world
            )
        seen_as = call if outcome is None else outcome
        since = None if seen_as is None else memory.since(seen_as, owner.news)
        novel = since is None and not opened.refused
        unchanged = answer is not None and answer == said
        used = step.input_tokens or step.output_tokens or step.cost_usd
        odd = short or near or familiar or unchanged or used or options is not None
        facts = Facts(
            "tool",
            opened.name,
            owner.key,
            elapsed_s,
            call,
            outcome,
            False,  # noqa: FBT003 -- by position: this is the hottest constructor there is
            error is not None,
            novel,
            since,
            opened.batch,
            owner.results,
            owner.latest_news,
            owner.calls,
            before,
            unchanged,
            novel and answer is not None and not odd,
            answer,
            signature,
            nothing,
            short,
            near,
            familiar,
            error is not None and self._is_unknown(opened, arguments),
            count_of(step.input_tokens) if used else 0,
            count_of(step.output_tokens) if used else 0,
            (dollars_of(step.cost_usd) or 0.0) if used else 0.0,
            None if options is None else options.rules,
        )
        if options is None or facts.failed:
            return facts, False
        if options.writes:
            self._change_world(options.writes, step, facts)
        return facts, options.finish

    def keep(self, facts: Facts, owner: AgentRules) -> None:
        """Remember what a tool call brought."""
        self._work += owner.count(facts)
        seen_as = facts.call if facts.outcome is None else facts.outcome
        if seen_as is not None:
            self.repeated += not facts.novel
            self._memory.keep(seen_as, owner.news)

    def _change_world(
        self, writes: Literal[True] | Callable[[Step], object], step: Step, facts: Facts
    ) -> None:
        """After a tool that writes has written something new, all may be read again."""
        if writes is True:
            self._worlds += facts.novel
            return
        world = state_after(writes, step)
        if world is None:  # nobody knows: what is new may have changed it
            self.failed_callbacks += 1
            self._worlds += facts.novel
            return
        self._worlds += world != self._world
        self._world = world

    @staticmethod
    def _is_unknown(opened: OpenStep, arguments: bytes | None) -> bool:
        """Say whether a call failed because there is no such tool, or no such arguments."""
        if arguments is not None and arguments.startswith(UNREADABLE):
            return True
        offered = opened.owner.offered
        return offered is not UNKNOWN and opened.name not in offered
