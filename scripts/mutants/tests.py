"""Which tests belong to which module: they run on its mutants in this order, the quickest first."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from scripts.environment import ROOT

RULES = (
    "unit/test_detectors.py",
    "unit/test_rules.py",
    "unit/test_limits.py",
    "unit/test_similar_rules.py",
    "unit/test_wasted.py",
    "unit/test_time.py",
    "unit/test_overrides.py",
    "unit/test_invocations.py",
    "unit/test_guard.py",
    "properties/test_rule_laws.py",
    "properties/test_detector_laws.py",
    "properties/test_resting.py",
    "properties/test_oracles.py::test_every_count_of_a_rule_is_what_its_definition_says[rules]",
)
STAGNATION = (
    "unit/test_policy_laws.py",
    "unit/test_backtest_step_classes.py",
    "unit/test_backtest_fitting.py",
    "unit/test_backtest_fits.py",
)
ENGINE = (
    "unit/test_guard.py",
    "unit/test_guard_runs.py",
    "unit/test_healthy.py",
    "unit/test_engine_edges.py",
    "unit/test_horizons.py",
    "unit/test_memory.py",
    "unit/test_open_steps.py",
    "unit/test_detectors.py",
    "unit/test_rules.py",
    "unit/test_overrides.py",
    "unit/test_invocations.py",
    "unit/test_time.py",
    "unit/test_limits.py",
    "unit/test_wasted.py",
    "unit/test_conversations.py",
    "unit/test_recorded_run.py",
    "unit/test_runs.py",
    "cases",
    "properties/test_resting.py",
    "properties/test_laws.py",
    "properties/test_oracles.py",
)
POLICY = (
    "unit/test_policy.py",
    "unit/test_policy_tools.py",
    "unit/test_policy_usage.py",
    "unit/test_policy_warnings.py",
    "unit/test_policy_page.py",
    "unit/test_environment.py",
    "unit/test_limits.py",
    "unit/test_overrides.py",
    "unit/test_policy_laws.py",
)
CANONICAL = (
    "unit/test_canonical.py",
    "properties/test_canonical.py",
    "unit/test_canonical_bounds.py",
    "properties/test_odd_inputs.py",
)
RESULTS = ("unit/test_memory.py", "unit/test_results_page.py", "properties/test_results.py")

RUN_AGENT = (
    "unit/test_run_agent.py",
    "unit/test_run_agent_async.py",
    "unit/test_run_agent_spans.py",
    "unit/test_run_agent_arguments.py",
    "unit/test_run_agent_awaited.py",
    "unit/test_run_agent_turns.py",
    "unit/test_run_agent_page.py",
    "telemetry/test_run_agent.py",
)

TESTS = {
    "detectors/stagnation.py": (*STAGNATION, *RULES),
    "detectors/_stagnation_classes.py": (*STAGNATION, "unit/test_guard.py", "cases"),
    "detectors/_[a-z]*.py": (*RULES[:-3], "cases"),
    "detectors/__init__.py": ("unit/test_policy.py", "unit/test_policy_page.py", *RULES[:3]),
    "detectors/*.py": RULES,
    "engine/*.py": ENGINE,
    "guard.py": ENGINE,
    "endings.py": ("unit/test_endings.py", "unit/test_rules.py", "unit/test_guard.py", "cases"),
    "settings.py": (*POLICY, *ENGINE),
    "decisions.py": ENGINE,
    "policy.py": POLICY,
    "options/*.py": POLICY,
    "canonical.py": CANONICAL,
    "pricing.py": ("unit/test_pricing.py", "properties/test_pricing.py", "unit/test_limits.py"),
    "agent_loop/schema.py": ("unit/test_run_agent_arguments.py",),
    "agent_loop/unjudged.py": ("unit/test_run_agent_arguments.py",),
    "agent_loop/*.py": RUN_AGENT,
    "values/answers.py": ("unit/test_answers.py", *RESULTS),
    "values/failures.py": ("unit/test_failures.py", *RESULTS),
    "values/volatile.py": ("unit/test_volatile.py", *RESULTS),
    "values/_volatile_parts.py": ("unit/test_volatile.py", *RESULTS),
    "values/*.py": CANONICAL,
}
"""The first pattern that fits counts."""


def modules_like(patterns: Sequence[str]) -> list[str]:
    """Return the modules that fit one of the patterns, or that have tests here if there is none."""
    package = ROOT / "otel_loopguard"
    modules = sorted(path.relative_to(package).as_posix() for path in package.rglob("*.py"))
    wanted = [f"{pattern.removesuffix('.py')}.py" for pattern in patterns] or ["*"]
    return [m for pattern in wanted for m in modules if fnmatchcase(m, pattern) and tests_of(m)]


def tests_of(module: str) -> tuple[str, ...]:
    """Return the paths of a module's tests below `tests/`."""
    return next((tests for like, tests in TESTS.items() if fnmatchcase(module, like)), ())


def rule_of(module: str) -> str | None:
    """Return the rule whose module it is: tests made for each rule run for this one only."""
    folder, _, name = module.rpartition("/")
    rule = name.removesuffix(".py")
    return rule if folder == "detectors" and not rule.startswith("_") else None


def rules() -> frozenset[str]:
    """Return all rules."""
    named = map(rule_of, modules_like(["detectors/*.py"]))
    return frozenset(rule for rule in named if rule is not None)
