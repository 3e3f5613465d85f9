"""Guard trips: what runs away, who and on what, and whether the stop worked."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.generator.board import Section, board, explored
from dashboards.generator.panels import (
    ANY_IS_BAD,
    ANY_IS_ODD,
    BLUE,
    GREEN,
    NEUTRAL,
    ORANGE,
    RED,
    alerts,
    bars,
    curves,
    query,
    tile,
)
from dashboards.generator.promql import (
    RANGE,
    STEP,
    counted,
    grew,
    most,
    of,
    or_zero,
    quantile,
    some,
    total,
)
from dashboards.generator.tables import at_once, rows

AGENT, RULE, HOOK = "gen_ai_agent_name", "loopguard_rule", "loopguard_abort_hook"
VIOLATIONS = of("loopguard_violations_total", rule=True)
TRIPS = of("loopguard_violations_total", 'loopguard_action="abort"', rule=True)
BY_TOOL = of("loopguard_violations_by_tool_total", agent=False, rule=True)
RUNS = of("loopguard_runs_total")
TRIPPED_RUNS = of("loopguard_runs_total", 'loopguard_tripped="true"')
STOPPED_RUNS = of("loopguard_runs_total", 'loopguard_run_status="aborted"')
FAILED = of("loopguard_aborts_total", 'loopguard_abort_result!="ok"', agent=False)
ABORTS = of("loopguard_aborts_total", agent=False)
REQUESTS = of("loopguard_abort_requests_total", agent=False)
AFTER_TRIP = of("loopguard_run_steps_after_trip_total")
TO_STOP = of("loopguard_abort_duration_seconds_bucket", agent=False)
TO_END = of("loopguard_run_duration_after_trip_seconds_bucket")
TRACED = of("loopguard_traces_events_total", rule=True)
# `loopguard.tripped` is on the run's topmost span, which need not name the agent: the event does.
TRACES_OF_AGENT = (
    '{ event:name = "loopguard.violation" && event.loopguard.action = "abort"'
    ' && event.gen_ai.agent.name = "${__value.raw}" }'
)
STOPS = {"ok": GREEN, "failed": RED, "timeout": ORANGE}


def guard_trips() -> Dashboard:
    return board(
        "loopguard-trips",
        "Loopguard / Guard trips",
        "Is something running away, which agent on which rule, and did the stop work?",
        [_now(), _who(), _stopped(), _elsewhere()],
        by_rule=True,
    )


def _now() -> Section:
    running = of("loopguard_run_active", 'loopguard_tripped="true"')
    oldest = of("loopguard_run_age_max_seconds")
    return "Now, and in the time that is shown", [
        tile(
            "Tripped, still on",
            "Runs that have tripped and go on at this moment. In mode enforce this falls back to "
            "0 within seconds; if it stays, look at the steps after the trip below, and stop the "
            "agent's process by hand. In mode observe nothing is stopped: see the guards' mode.",
            or_zero(total(running)),
            steps=ANY_IS_BAD,
        ),
        tile(
            "Oldest run",
            "How long the oldest run that goes on has been going on. A run that never ends is in "
            "no histogram of runs. If it is older than any good run of yours, open Runs and "
            "budgets.",
            or_zero(most(oldest)),
            unit="s",
            steps=((None, NEUTRAL), (600, ORANGE), (1800, RED)),
        ),
        tile(
            "Trips",
            "Violations whose action is abort. Warnings are not among them. Go on to the table of "
            "agents and rules.",
            or_zero(counted(TRIPS)),
            steps=ANY_IS_ODD,
        ),
        tile(
            "Runs stopped",
            "Runs that ended because a stop reached them, or one around them. Fewer than trips: "
            "some went on, or still do.",
            or_zero(counted(STOPPED_RUNS)),
        ),
        tile(
            "Stops failed",
            "Stops that raised or did not come back in time. The run may still be spending: the "
            "table of stops says which hook it was, docs/stopping.md what else can stop it. Not "
            "by agent: a stop does not say whose run it ended.",
            or_zero(counted(FAILED)),
            steps=ANY_IS_BAD,
        ),
        tile(
            "Steps after trip",
            "Steps that started after their run had tripped, and that nothing kept from "
            "happening: what the trip did not save. If it grows in mode enforce, the stop does "
            "not reach the agent.",
            or_zero(counted(AFTER_TRIP)),
            steps=ANY_IS_ODD,
        ),
    ]


def _who() -> Section:
    tripped = total(grew(TRIPPED_RUNS), AGENT)
    ended = f"({some(total(grew(RUNS), AGENT))})"
    return "Which agent, which rule, which tool", [
        bars(
            "Violations by rule",
            "Warnings and trips. A diamond is one violation with its trace: click it, and read "
            "the event loopguard.violation on the run's span. Zoomed in far, bars overlap in "
            "time.",
            query(counted(VIOLATIONS, RULE, window=STEP), "{{loopguard_rule}}", exemplars=True),
            width=16,
        ),
        alerts(
            "Alerts",
            "Guard alerts that fire or are about to. Each has a runbook.",
            width=8,
        ),
        rows(
            "Agents and rules",
            "Violations by agent and rule; a click on an agent searches its tripped traces. "
            "Nothing in a row of warnings was stopped: a rule that only warns can be set to "
            "abort.",
            {AGENT: "Agent", RULE: "Rule", "loopguard_action": "Action", "Value": "Violations"},
            at_once(counted(VIOLATIONS, AGENT, RULE, "loopguard_action")),
            links={"Agent": explored(TRACES_OF_AGENT)},
            width=24,
        ),
        rows(
            "Tools",
            "Violations by tool calls, all agents together. A tool that leads the list for "
            "several rules is often one that polls: exempt it or set it apart in the policy.",
            {"gen_ai_tool_name": "Tool", RULE: "Rule", "Value": "Violations"},
            at_once(counted(BY_TOOL, "gen_ai_tool_name", RULE)),
            width=24,
            height=7,
        ),
        rows(
            "Share of runs that tripped",
            "Runs that ended, and how many of them had tripped. A high share on healthy work is a "
            "policy that is too tight: replay recorded runs before you loosen it.",
            {AGENT: "Agent", "Value #A": "Runs", "Value #B": "Tripped", "Value #C": "Share"},
            at_once(counted(RUNS, AGENT), ref="A"),
            at_once(f"round({tripped}) or {ended} * 0", ref="B"),
            at_once(f"{tripped} / {ended} or {ended} * 0", ref="C"),
            units={"Share": "percentunit"},
            steps={"Share": ((None, NEUTRAL), (0.05, ORANGE), (0.2, RED))},
            width=15,
        ),
        bars(
            "Ends of tripped runs",
            "How runs ended that had tripped. Other than aborted: nothing stopped them in time, "
            "or the guard only observes.",
            query(
                counted(TRIPPED_RUNS, "loopguard_run_status", window=STEP),
                "{{loopguard_run_status}}",
            ),
            width=9,
            colours={"aborted": GREEN, "running": RED},
        ),
    ]


def _stopped() -> Section:
    by_result = counted(ABORTS, "loopguard_abort_result", window=STEP)
    steps = query(counted(AFTER_TRIP, AGENT, window=STEP), "{{gen_ai_agent_name}}")
    return "Did the stop work?", [
        rows(
            "Stops",
            "What was asked of each stop, and what came of it. Asked and never answered: nothing "
            "has come to the gate since, or the process ended in the hook. Hooks that fail are "
            "asked again at the run's next step.",
            {
                HOOK: "Stop",
                "Value #A": "Asked",
                "Value #B": "Worked",
                "Value #C": "Failed",
                "Value #D": "Too late",
                "Value #E": "95 % within",
            },
            at_once(counted(REQUESTS, HOOK), ref="A"),
            *(
                at_once(f"round({total(grew(_aborts(result)), HOOK)})", ref=ref)
                for ref, result in (("B", "ok"), ("C", "failed"), ("D", "timeout"))
            ),
            at_once(quantile(0.95, TO_STOP, HOOK, window=RANGE), ref="E"),
            units={"95 % within": "s"},
            steps={"Failed": ANY_IS_BAD, "Too late": ANY_IS_BAD},
            sort="Failed",
            width=14,
        ),
        bars(
            "Stops by result",
            "Anything but ok may leave a run that goes on.",
            query(by_result, "{{loopguard_abort_result}}"),
            width=10,
            colours=STOPS,
        ),
        curves(
            "Time to stop",
            "From the trip to the stop's delivery, 95 of 100, by stop. Seconds here are seconds "
            "of spending; a slow webhook does not delay the gate.",
            query(quantile(0.95, TO_STOP, HOOK), "{{loopguard_abort_hook}}"),
            unit="s",
        ),
        curves(
            "From trip to end",
            "From the trip to the end of the run. Much longer than the time to stop: the "
            "framework swallows the stop and goes on. Runs that have not ended are not in it.",
            query(quantile(0.5, TO_END), "median", ref="A"),
            query(quantile(0.95, TO_END), "95 of 100", ref="B"),
            unit="s",
            colours={"median": BLUE, "95 of 100": ORANGE},
        ),
        bars(
            "Steps after the trip",
            "By agent. In mode enforce a rate that does not go back to zero is a run that cannot "
            "be stopped from inside: end its process.",
            steps,
            width=24,
        ),
    ]


def _aborts(result: str) -> str:
    return of("loopguard_aborts_total", f'loopguard_abort_result="{result}"', agent=False)


def _elsewhere() -> Section:
    traced = counted(TRACED, "job", RULE, window=STEP)
    return "Counted from traces by a collector, for agents in any language", [
        bars(
            "Violations in traces",
            "Events loopguard.violation in the spans that a collector has seen, counted by its "
            "span_metrics connector (collector-config). Agents whose process exports no metrics "
            "are here and nowhere else. Those that do are here too: do not add the two.",
            query(traced, "{{job}}: {{loopguard_rule}}", exemplars=True),
            width=24,
        ),
    ]
