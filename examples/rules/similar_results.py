"""The command answers the same but for a name that it makes up each time. Switched on for this
example: it is off by default.
"""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.from_mapping(
    {"rules": {"similar_results": {"warn": 3, "abort": 5}}}, base=Policy.none()
)


def spoken(steps):
    guard = LoopGuard(policy)
    for step in steps:
        if not (guard.check(step).allowed and guard.record(step).allowed):
            break
    return [(found.action, found.step, found.count) for found in guard.end().violations]


def build(answer):
    return Step(kind="tool", name="build", arguments={"target": "all"}, result=answer)


failed = [
    f"make: the build of the target 'all' in the folder tmp{name} did not succeed: zlib is missing"
    for name in ["ax", "bo", "cu", "di", "ev", "fy"]
]

assert spoken(map(build, failed)) == [("warn", 3, 3), ("abort", 5, 5)]
assert (
    spoken(map(build, ["main.c: no such file", "linking failed: zlib", "all tests passed"])) == []
)
