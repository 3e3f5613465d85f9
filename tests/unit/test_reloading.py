"""A policy file that changes while the guard works."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from otel_loopguard import (
    AbortRequest,
    LoopGuardSpanProcessor,
    Policy,
    PolicyError,
    RunAborted,
    environment,
    guarded_run,
    install,
    policy_file,
    read_policy,
    reloading,
    uninstall,
)
from otel_loopguard.cli.policies import read_named
from tests._tracing import Traced

NAME = "OTEL_LOOPGUARD_CONFIG"
LONG_AGO = count(1_000_000_000)
"""Times, in seconds since 1970, at which nobody was writing to a file any more."""


def calls(limit: int) -> str:
    """Return a policy without rules that would speak about what the agents here do."""
    off = "\n".join(f"[rules.{rule}]\nenabled = false" for rule in Policy().settings.rules)
    return f"[limits]\nmax_llm_calls = {limit}\n{off}\n"


def at_rest(path: Path) -> None:
    """Let a file be one that was written long ago; its time differs from all before."""
    at = next(LONG_AGO)
    os.utime(path, (at, at))


def put(path: Path, text: str | bytes) -> None:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    at_rest(path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "loopguard.toml"
    put(path, calls(5))
    return path


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each span that starts look at the file."""
    monkeypatch.setattr(reloading, "PAUSE_S", 0.0)


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Callable[[], list[tuple[str, str]]]:
    """Return what was logged since it was last asked for: level and message."""
    caplog.set_level(logging.INFO, "otel_loopguard")

    def since() -> list[tuple[str, str]]:
        found = [(each.levelname, each.getMessage()) for each in caplog.records]
        caplog.clear()
        return found

    return since


Told = Callable[[], list[tuple[str, str]]]


def kept(*mistakes: str) -> tuple[str, str]:
    lines = "\n".join(mistakes)
    return "WARNING", f"the policy stays as it was, for its file cannot be followed:\n{lines}"


def taken(path: object) -> tuple[str, str]:
    said = f"the policy file has changed: runs that begin from now on go by what {path} says"
    return "INFO", said


def look(process: Traced, times: int = 3) -> None:
    """Start spans that are no agent's."""
    for _ in range(times):
        process.tracer.start_span("GET /").end()


def run(process: Traced, turns: int) -> None:
    with process.agent():
        for _ in range(turns):
            with process.chat():
                pass


def stops(process: Traced) -> list[tuple[float, float]]:
    """Return how many model calls it was, and how many were allowed, of each stop."""
    found = [labels for _, name, labels in process.events() if name == "loopguard.violation"]
    return [(each["loopguard.count"], each["loopguard.threshold"]) for each in found]


def limit(guard: LoopGuardSpanProcessor) -> int | None:
    return guard.policy.settings.limits.max_llm_calls


def test_runs_that_begin_go_by_it_and_runs_that_are_open_keep_theirs(
    process: Traced, file: Path, monkeypatch: pytest.MonkeyPatch, told: Told
) -> None:
    monkeypatch.setenv(NAME, str(file))
    guard = process.guard()
    open_run = process.tracer.start_span(
        "invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}
    )
    put(file, calls(2))

    run(process, 3)
    assert stops(process) == [(3, 2)]
    with process.below(open_run):
        for _ in range(6):
            with process.chat():
                pass
    open_run.end()

    assert stops(process) == [(3, 2), (6, 5)]
    assert limit(guard) == 2
    assert told() == [taken(file)]
    assert process.counts("loopguard.policy.reloads") == [
        ({"loopguard.policy.reload.result": "ok"}, 1),
        ({"loopguard.policy.reload.result": "failed"}, 0),
    ]


def test_a_block_inside_another_goes_by_what_is_said_when_its_first_step_comes(
    process: Traced, file: Path
) -> None:
    process.guard(file, abort=["gate"])
    with guarded_run("outer") as outer:
        process.turn()
        with pytest.raises(RunAborted) as raised, guarded_run("inner"):
            put(file, calls(2))
            process.turn(3)
        process.turn(2)

    assert raised.value.run_id == "inner"
    assert outer.report is not None
    assert (outer.report.model_calls, outer.report.rule) == (5, None)


def test_a_model_request_looks_as_well(process: Traced, file: Path) -> None:
    """It may be all that is seen of a run."""
    process.guard(file, abort=["gate"])
    put(file, calls(1))

    with pytest.raises(RunAborted), guarded_run():
        process.request_model()
        process.request_model()


def test_a_limit_on_time_that_is_new_has_a_timer(process: Traced, file: Path) -> None:
    late: list[str | None] = []
    heard = threading.Event()

    def hook(request: AbortRequest) -> None:
        late.append(request.violation.rule)
        heard.set()

    process.guard(file, abort_hooks=[hook])
    put(file, "[limits]\nmax_duration_s = 0.01\n")
    with process.agent(), process.tool():
        assert heard.wait(10)

    assert late == ["time_budget"]


class TestWhereTheFileIsNamed:
    @pytest.mark.parametrize("as_text", [True, False])
    def test_in_code(self, process: Traced, file: Path, *, as_text: bool) -> None:
        guard = process.guard(str(file) if as_text else file)
        assert limit(guard) == 5
        put(file, calls(2))
        look(process)

        assert limit(guard) == 2

    def test_to_install(self, process: Traced, file: Path) -> None:
        guard = install(file, mode="observe", meter_provider=process.meters)
        process.guards.append(guard)
        try:
            put(file, calls(2))
            guard.on_start(process.tracer.start_span("GET /"))  # type: ignore[arg-type]  # the SDK's
        finally:
            uninstall()

        assert limit(guard) == 2

    def test_code_comes_before_the_variable(
        self, process: Traced, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(NAME, str(file.with_name("nowhere.toml")))
        monkeypatch.setenv("OTEL_LOOPGUARD_MAX_STEPS", "9")

        policy = process.guard(file).policy
        assert policy == read_policy(file).with_limits(max_steps=9)

    def test_a_mistake_at_the_start_names_it(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(file, "mode = 3")
        said = f"{file}: mode: expected 'observe' or 'enforce', got 3"
        with pytest.raises(PolicyError) as in_code:
            LoopGuardSpanProcessor(file)
        monkeypatch.setenv(NAME, str(file))
        with pytest.raises(PolicyError) as by_variable:
            LoopGuardSpanProcessor()

        assert str(in_code.value) == said
        assert str(by_variable.value) == f"{NAME}: {said}"

    def test_a_process_may_change_its_directory(
        self, process: Traced, file: Path, monkeypatch: pytest.MonkeyPatch, told: Told
    ) -> None:
        monkeypatch.chdir(file.parent)
        guard = process.guard(file.name)
        monkeypatch.chdir("/")
        put(file, calls(2))
        look(process)

        assert limit(guard) == 2
        assert told() == [taken(file.name)]
        put(file, "mode = 'stop'")
        look(process)
        assert told() == [kept(f"{file.name}:1: {NO_MODE}")]

    def test_a_policy_that_was_read_in_code_stays(
        self, process: Traced, file: Path, told: Told
    ) -> None:
        guard = process.guard(read_policy(file))
        put(file, calls(2))
        look(process)

        assert limit(guard) == 5
        assert (told(), process.counts("loopguard.policy.reloads")) == ([], [])

    @pytest.mark.skipif(not Path("/dev/fd").exists(), reason="pipes have no names here")
    def test_a_pipe_is_read_once(self, process: Traced, told: Told) -> None:
        reading, writing = os.pipe()
        os.write(writing, calls(2).encode())
        os.close(writing)
        guard = process.guard(f"/dev/fd/{reading}")
        os.close(reading)
        look(process)

        assert (limit(guard), told()) == (2, [])


class TestVariables:
    def test_they_stay_over_it_as_they_were_at_the_start(
        self, process: Traced, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OTEL_LOOPGUARD_MAX_LLM_CALLS", "7")
        guard = process.guard(file)
        monkeypatch.setenv("OTEL_LOOPGUARD_MAX_LLM_CALLS", "8")
        put(file, calls(2).replace("[limits]", "[limits]\nmax_steps = 3"))
        look(process)

        assert (limit(guard), guard.policy.settings.limits.max_steps) == (7, 3)

    def test_one_that_cannot_be_laid_over_it_is_named(
        self, process: Traced, file: Path, monkeypatch: pytest.MonkeyPatch, told: Told
    ) -> None:
        monkeypatch.setenv("OTEL_LOOPGUARD_RULES_SWEEP", "on")
        put(file, calls(5) + "[rules.sweep]\nwarn = 3\n")
        guard = process.guard(file)
        put(file, calls(2))
        look(process)

        assert limit(guard) == 5
        [(level, said)] = told()
        assert level == "WARNING"
        assert "OTEL_LOOPGUARD_RULES_SWEEP: expected warn, abort or both, for this rule" in said

    def test_none_is_blamed_for_what_the_file_may_have_meant_to_say(
        self, process: Traced, file: Path, monkeypatch: pytest.MonkeyPatch, told: Told
    ) -> None:
        monkeypatch.setenv("OTEL_LOOPGUARD_RULES_SWEEP", "on")
        sweep = "[rules.sweep]\nwarn = 3\n"
        put(file, sweep)
        process.guard(file)
        put(file, f"mode = 'stop'\n{sweep}")
        look(process)

        assert told() == [kept(f"{file}:1: {NO_MODE}")]


MISTAKEN = "mode = 'stop'\n[limits]\nmax_stepz = 3\n"
CANNOT = "the policy file cannot be read"
TOO_LARGE = "it has more than 65,536 bytes"
NO_MODE = "mode: expected 'observe' or 'enforce', got 'stop'"
NO_OPTION = "limits.max_stepz: there is no such option here; did you mean 'max_steps'?"


EMPTY = "the policy file is empty: expected a table or a key; if the default policy is meant, "
NO_FILE = f": {CANNOT}: it is no regular file"


def gone(file: Path) -> str:
    file.unlink()
    return f": {CANNOT}: No such file or directory"


def a_folder(file: Path) -> str:
    file.unlink()
    file.mkdir()
    return NO_FILE


def a_pipe(file: Path) -> str:
    file.unlink()
    os.mkfifo(file)
    return NO_FILE


def huge(file: Path) -> str:
    put(file, "#" * (environment.BYTES + 1))
    return f": {CANNOT}: {TOO_LARGE}"


def empty(file: Path) -> str:
    put(file, "")
    return f": {EMPTY}"


def comments_alone(file: Path) -> str:
    put(file, "\n # [limits]\n\t\r\n#")
    return f": {EMPTY}"


def no_text(file: Path) -> str:
    put(file, b"\n\xff")
    return ":2: expected UTF-8 text (at line 2)"


def cut(file: Path) -> str:
    put(file, calls(2)[:15])
    return ":2: expected TOML, but "


def many_mistakes(file: Path) -> str:
    put(file, "".join(f"option{n} = 1\n" for n in range(20)))
    lines = [f":{n + 1}: option{n}: there is no such option here" for n in range(10)]
    return "\n".join([*lines, ": there are more mistakes than the 10 that are named"])


def mistakes(file: Path) -> str:
    put(file, MISTAKEN)
    return f":1: {NO_MODE}\n:3: {NO_OPTION}"


SPOILT = [gone, a_folder, huge, empty, comments_alone, no_text, cut, many_mistakes, mistakes]
if hasattr(os, "mkfifo"):
    SPOILT.append(a_pipe)


@pytest.mark.parametrize("spoil", SPOILT)
def test_a_file_that_cannot_be_followed_changes_nothing_and_is_told_of_once(
    process: Traced, file: Path, told: Told, spoil: Callable[[Path], str]
) -> None:
    guard = process.guard(file)
    before = guard.policy
    expected = spoil(file).splitlines()
    look(process, 5)
    run(process, 6)

    assert guard.policy is before
    assert stops(process) == [(6, 5)]
    [(level, said)] = told()
    first, *lines = said.splitlines()
    assert (level, f"{first}\n") == kept("")
    assert len(lines) == len(expected)
    for line, part in zip(lines, expected, strict=True):
        assert line.startswith(f"{file}{part}")
    assert process.total("loopguard.policy.reloads", policy__reload__result="failed") == 1

    if file.is_dir():
        file.rmdir()
    else:
        file.unlink(missing_ok=True)
    put(file, calls(2))
    look(process)
    assert (limit(guard), told()) == (2, [taken(file)])
    assert process.total("loopguard.policy.reloads", policy__reload__result="ok") == 1


@pytest.mark.parametrize("read", [LoopGuardSpanProcessor, read_policy, read_named, install])
def test_a_file_is_as_large_as_it_may_be_wherever_it_is_read(
    file: Path, read: Callable[[str], object]
) -> None:
    text = calls(2)
    put(file, text + "#" * (environment.BYTES - len(text)))
    assert read_policy(file).settings.limits.max_llm_calls == 2
    put(file, text + "#" * (environment.BYTES + 1 - len(text)))
    with pytest.raises(PolicyError) as raised:
        read(str(file))

    assert str(raised.value) == f"{file}: {CANNOT}: {TOO_LARGE}"


def test_one_that_is_empty_at_the_start_is_the_default_policy_until_it_says_more(
    process: Traced, file: Path, told: Told
) -> None:
    put(file, "")
    guard = process.guard(file)
    by_rename(file)
    look(process)
    put(file, "[limits]")
    look(process)

    assert told() == [taken(file), taken(file)]
    assert guard.policy == Policy()


def test_a_path_that_no_system_has_is_a_mistake_like_others() -> None:
    with pytest.raises(PolicyError, match="the policy file cannot be read: embedded null byte"):
        LoopGuardSpanProcessor("a\0b")


def test_what_is_put_back_as_it_was_is_told_of(process: Traced, file: Path, told: Told) -> None:
    guard = process.guard(file)
    put(file, MISTAKEN)
    look(process)
    put(file, MISTAKEN.replace("mode", "#ode"))
    look(process)
    put(file, calls(5))
    look(process)

    assert told() == [
        kept(f"{file}:1: {NO_MODE}", f"{file}:3: {NO_OPTION}"),
        kept(f"{file}:3: {NO_OPTION}"),
        taken(file),
    ]
    assert limit(guard) == 5


def by_rename(file: Path) -> None:
    new = file.with_name(".loopguard.toml.swp")
    put(new, calls(2))
    new.replace(file)


def in_place_with_the_old_time(file: Path) -> None:
    before = file.stat()
    file.write_text(calls(2))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_mtime_ns, file.stat().st_size) == (before.st_mtime_ns, before.st_size)


def by_rename_with_the_old_time(file: Path) -> None:
    before, new = file.stat(), file.with_name("new.toml")
    new.write_text(calls(2))
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    new.replace(file)


@pytest.mark.parametrize(
    "change", [by_rename, in_place_with_the_old_time, by_rename_with_the_old_time]
)
def test_however_it_is_replaced(
    process: Traced, file: Path, change: Callable[[Path], None]
) -> None:
    guard = process.guard(file)
    look(process)
    change(file)
    look(process)

    assert limit(guard) == 2


def test_links_are_followed_as_in_a_config_map(process: Traced, tmp_path: Path, told: Told) -> None:
    """Kubernetes swaps the link to a folder; files in it keep their size, and may their times."""
    for name, allowed in (("..1", 5), ("..2", 2)):
        (tmp_path / name).mkdir()
        put(tmp_path / name / "loopguard.toml", calls(allowed))
        os.utime(tmp_path / name / "loopguard.toml", (1e9, 1e9))
    (tmp_path / "..data").symlink_to("..1")
    file = tmp_path / "loopguard.toml"
    file.symlink_to("..data/loopguard.toml")
    guard = process.guard(file)
    look(process)
    (tmp_path / "..data_tmp").symlink_to("..2")
    (tmp_path / "..data_tmp").replace(tmp_path / "..data")
    look(process)

    assert (limit(guard), told()) == (2, [taken(file)])


def test_a_file_that_only_looks_changed_is_not_told_of(
    process: Traced, file: Path, told: Told
) -> None:
    guard = process.guard(file)
    before = guard.policy
    for _ in range(3):
        at_rest(file)
        look(process)
    by_rename(file)
    put(file, calls(5))
    look(process)

    assert guard.policy is before
    assert told() == []
    assert process.total("loopguard.policy.reloads") == 0


def test_what_is_being_written_is_not_read(
    process: Traced, file: Path, monkeypatch: pytest.MonkeyPatch, told: Told
) -> None:
    """Without its end a file may be a good one that lacks the limits; so may an empty one."""
    monkeypatch.setattr(policy_file, "REST_NS", 10**13)
    guard = process.guard(file)
    look(process)
    text = calls(2).encode()
    with file.open("wb", buffering=0) as written:
        for part in (b"", text[:30], text[30:]):
            written.write(part)
            os.utime(file)
            look(process, 1)
            assert limit(guard) == 5
    file.unlink()
    look(process, 1)
    put(file, text)
    look(process)

    assert (limit(guard), told()) == (2, [taken(file)])


def test_what_is_written_at_one_moment_is_told_apart_in_real_time(
    process: Traced, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reloading, "PAUSE_S", 1.0)
    guard = process.guard(file)
    file.write_text(calls(2))
    began_s = time.monotonic()
    look(process, 1)
    file.write_text(calls(3))  # of the same size, and perhaps at the same time by the file's clock
    while limit(guard) != 3:
        assert time.monotonic() < began_s + 20
        time.sleep(0.01)
        look(process, 1)

    assert time.monotonic() >= began_s + 1


def test_between_two_looks_there_is_a_pause(
    process: Traced, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reloading, "PAUSE_S", 3600.0)
    guard = process.guard(file)
    look(process)
    put(file, calls(2))
    look(process, 100)

    assert limit(guard) == 5


def test_a_mode_that_has_changed_is_named_and_stays(
    process: Traced, file: Path, told: Told
) -> None:
    guard = process.guard(file, mode=None)
    put(file, "mode = 'enforce'\n" + calls(2))
    look(process)
    assert (guard.mode, limit(guard)) == ("observe", 2)
    anew = "'enforce' counts when the process is started anew"
    assert told() == [
        taken(file),
        ("WARNING", f"{file}: mode: {anew}; until then it is 'observe'"),
    ]

    put(file, "mode = 'observe'\n" + calls(2))
    look(process)
    assert told() == [taken(file)]


@pytest.mark.parametrize("where", ["in code", "in a variable"])
def test_a_mode_that_stands_before_the_files_is_not(
    process: Traced, file: Path, monkeypatch: pytest.MonkeyPatch, told: Told, where: str
) -> None:
    if where == "in a variable":
        monkeypatch.setenv("OTEL_LOOPGUARD_MODE", "observe")
    process.guard(file, mode="observe" if where == "in code" else None)
    put(file, "mode = 'enforce'\n" + calls(2))
    look(process)

    assert told() == [taken(file)]


def test_what_may_not_be_meant_is_told_of_as_at_the_start(
    process: Traced, file: Path, told: Told
) -> None:
    doubtful = calls(5) + "[agents.'*']\n[agents.planner]\n"
    put(file, doubtful)
    process.guard(file)
    [at_start] = told()
    put(file, calls(5))
    look(process)
    put(file, doubtful)
    look(process)

    assert told() == [taken(file), taken(file), at_start]
    assert at_start[1].startswith('policy: agents."planner": never counts')


def test_rules_that_are_new_exist_at_zero(process: Traced, file: Path) -> None:
    process.guard(file)
    run(process, 1)
    put(file, calls(5) + "[rules.sweep]\nwarn = 3\n")
    look(process)

    seen = [labels for labels, _ in process.counts("loopguard.violations")]
    of_sweep = [each for each in seen if each["loopguard.rule"] == "sweep"]
    agents = [(each["loopguard.action"], each.get("gen_ai.agent.name")) for each in of_sweep]
    assert sorted(agents, key=str) == [
        ("abort", "scout"),
        ("abort", None),
        ("warn", "scout"),
        ("warn", None),
    ]
    with process.agent("another"):
        pass
    seen = [labels for labels, _ in process.counts("loopguard.violations")]
    of_another = [each for each in seen if each.get("gen_ai.agent.name") == "another"]
    assert "sweep" in {each["loopguard.rule"] for each in of_another}


class TestConversations:
    """Their runs carry on what earlier ones have used up, see docs/operations.md."""

    SCOPE = 'scope = "conversation"\n'

    @staticmethod
    def talk(process: Traced, turns: int) -> list[tuple[float, float]]:
        process.exporter.clear()
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "c"}
        with process.tracer.start_as_current_span("invoke_agent a", attributes=attributes):
            for _ in range(turns):
                with process.chat():
                    pass
        return stops(process)

    def test_what_they_have_used_up_counts_against_the_new_limits(
        self, process: Traced, file: Path
    ) -> None:
        put(file, self.SCOPE + calls(3))
        process.guard(file)
        assert self.talk(process, 2) == []
        put(file, self.SCOPE + calls(5))
        assert self.talk(process, 3) == []
        assert self.talk(process, 1) == [(6, 5)]
        put(file, self.SCOPE + calls(2))
        assert self.talk(process, 1) == [(7, 2)]

    def test_a_run_that_goes_on_meanwhile_keeps_its_limits_and_counts(
        self, process: Traced, file: Path
    ) -> None:
        put(file, self.SCOPE + calls(3))
        process.guard(file)
        assert self.talk(process, 1) == []
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "c"}
        with process.tracer.start_as_current_span("invoke_agent a", attributes=attributes):
            with process.chat():
                put(file, self.SCOPE + calls(9))
            for _ in range(2):
                with process.chat():
                    pass
        assert stops(process) == [(4, 3)]
        assert self.talk(process, 6) == [(10, 9)]

    def test_a_limit_that_is_new_counts_from_then_on(self, process: Traced, file: Path) -> None:
        put(file, self.SCOPE)
        process.guard(file)
        self.talk(process, 9)
        put(file, self.SCOPE + calls(2))
        assert self.talk(process, 2) == []
        assert self.talk(process, 1) == [(3, 2)]

    def test_the_scope_may_change(self, process: Traced, file: Path) -> None:
        process.guard(file)
        self.talk(process, 4)
        put(file, self.SCOPE + calls(5))
        assert self.talk(process, 4) == []
        assert self.talk(process, 2) == [(6, 5)]
        put(file, calls(5))
        assert self.talk(process, 5) == []
        assert self.talk(process, 6) == [(6, 5)]


class Held(logging.Handler):
    """A log handler that makes a span of its own, then waits until it may go on."""

    def __init__(self, process: Traced) -> None:
        super().__init__(logging.INFO)
        self._process = process
        self.is_in, self.may_go = threading.Event(), threading.Event()
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record.getMessage())
        with self._process.agent("log handler"):
            self.is_in.set()
            assert self.may_go.wait(10)


@pytest.fixture
def held(process: Traced) -> Iterator[Held]:
    handler, logger = Held(process), logging.getLogger("otel_loopguard.reloading")
    logger.addHandler(handler)
    before = logger.level
    logger.setLevel(logging.INFO)
    yield handler
    handler.may_go.set()
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_one_thread_reads_and_nobody_waits_for_it(process: Traced, file: Path, held: Held) -> None:
    guard = process.guard(file)
    put(file, calls(2))
    reader = threading.Thread(target=look, args=(process, 1))
    reader.start()
    assert held.is_in.wait(10)
    put(file, MISTAKEN)
    look(process)  # would wait for ever
    assert held.records == [taken(file)[1]]
    held.may_go.set()
    reader.join()
    look(process, 1)

    assert len(held.records) == 2
    assert limit(guard) == 2
    assert process.total("loopguard.runs") == 0, "what a log handler does is no work of an agent"


def test_under_many_threads_the_last_word_counts(process: Traced, file: Path) -> None:
    guard = process.guard(file)
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            run(process, 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for allowed in (*range(10, 40), 2):
        put(file, calls(allowed))
    is_over.set()
    for thread in threads:
        thread.join()
    look(process)

    assert limit(guard) == 2
    assert process.total("loopguard.errors") == 0


def test_a_fault_costs_no_span(
    process: Traced, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            raise RuntimeError(record.getMessage())

    logger, broken = logging.getLogger("otel_loopguard.reloading"), Broken()
    monkeypatch.setattr(logger, "filters", [broken])
    monkeypatch.setattr(logger, "level", logging.INFO)
    logger.manager._clear_cache()  # type: ignore[attr-defined]  # of levels; not in its stub
    process.guard(file)
    put(file, calls(2))
    run(process, 3)

    assert stops(process) == [(3, 2)]
    assert process.counts("loopguard.errors") == [({"error.type": "RuntimeError"}, 1)]
    [(of_run, runs)] = process.counts("loopguard.runs")
    assert (of_run["gen_ai.agent.name"], runs) == ("scout", 1)
    logger.manager._clear_cache()  # type: ignore[attr-defined]  # as above


FORKS = """
import logging, os, signal, sys, threading
from opentelemetry.sdk.trace import TracerProvider
from otel_loopguard import LoopGuardSpanProcessor, reloading

reloading.PAUSE_S = 0.0
path, allowed = sys.argv[1], "[limits]\\nmax_llm_calls = {}\\n"
is_in, may_go = threading.Event(), threading.Event()

def put(limit):
    with open(path, "w") as file:
        file.write(allowed.format(limit))
    os.utime(path, (limit, limit))

def look():
    provider.get_tracer("t").start_span("GET /").end()
    return guard.policy.settings.limits.max_llm_calls

class Held(logging.Handler):
    def emit(self, record):
        is_in.set()
        may_go.wait(10)

put(5)
provider = TracerProvider(shutdown_on_exit=False)
guard = LoopGuardSpanProcessor(path)
provider.add_span_processor(guard)
print(look(), flush=True)
logger = logging.getLogger("otel_loopguard.reloading")
logger.setLevel("INFO")
logger.addHandler(Held())
put(6)
reader = threading.Thread(target=look)
reader.start()
is_in.wait(10)
child = os.fork()
if child == 0:
    signal.alarm(10)
    may_go.set()
    put(7)
    print(look(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
may_go.set()
reader.join()
print(look(), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is nothing to fork with")
def test_a_child_that_is_forked_while_it_is_read_sees_for_itself(file: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS, str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )

    assert (done.stdout.split(), done.stderr) == (["5", "7", "7"], "")


def test_what_is_not_known_of_the_clock_is_no_reason_to_wait_for_ever(file: Path) -> None:
    ahead: dict[str, Any] = {"ns": (time.time_ns() + 10**12,) * 2}
    os.utime(file, **ahead)

    assert policy_file.is_at_rest(policy_file.state_of(str(file)))
