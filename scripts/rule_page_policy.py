"""The policy file on a page about a rule: the rule set wherever it can be."""

from __future__ import annotations

from collections.abc import Mapping

from otel_loopguard.detectors import RULES, Detector
from otel_loopguard.options.limits import LIMIT_OF_RULE
from otel_loopguard.options.rules import RULES as SETTABLE
from scripts.measure_rules import OPTIONAL_RULES
from scripts.rule_page_tables import level, limits_of, thresholds_of

LIMIT_EXAMPLES: Mapping[str, str] = {
    "max_steps": "100",
    "max_llm_calls": "50",
    "max_tool_calls": "50",
    "max_calls_per_tool": "{ send_mail = 1 }",
    "max_duration_s": "600",
    "max_idle_s": "120",
    "max_input_tokens": "1_000_000",
    "max_output_tokens": "50_000",
    "max_total_tokens": "1_000_000",
    "max_context_tokens": "120_000",
    "max_cost_usd": "2.50",
    "max_agent_depth": "4",
    "max_steps_per_minute": "60",
    "max_consecutive_errors": "5",
    "max_turns_without_tool": "5",
    "max_repeated_calls": "5",
    "compare_arguments": "true",
    "max_same_tool_calls": "20",
    "loop_pattern_window": "8",
}
"""A value of each limit, as in a policy file."""


def policy_text(detector: type[Detector]) -> str:
    """Return a policy file that sets the rule wherever it can be set."""
    rule = detector.rule
    if rule not in RULES:
        said = "\n".join(f"{name} = {LIMIT_EXAMPLES[name]}" for name in limits_of(detector))
        usual = LIMIT_OF_RULE[rule]
        own = '[agents."research-*".limits]  # of each invocation, with all below it'
        return f"[limits]\n{said}\n\n{own}\n{usual} = {LIMIT_EXAMPLES[usual]}"
    warn, abort = _example_levels(rule)
    parts = [f"[rules.{rule}]\nwarn = {level(warn)}\nabort = {level(abort)}"]
    if rule in SETTABLE["tool"]:
        parts.append(f"[tools.search.rules.{rule}]  # of one tool\nabort = {level(2 * abort)}")
    if rule in SETTABLE["agent"]:
        parts.append(f'[agents."research-*".rules.{rule}]  # of some agents\nenabled = false')
    return "\n\n".join(parts)


def _example_levels(rule: str) -> tuple[float, float]:
    defaults, (low, middle, _) = thresholds_of(rule), OPTIONAL_RULES.get(rule, (1, 3, 5))
    return defaults.warn or low, defaults.abort or middle
