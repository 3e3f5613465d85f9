"""A planner asks a researcher, who asks another one: two deep is allowed, three is not."""

from otel_loopguard import LoopGuard, Policy, Step

policy = Policy.none().with_limits(max_agent_depth=2)


def agent(name, above=None):
    return Step(kind="agent", name=name, agent=name, agent_id=name, agent_parent_id=above)


guard = LoopGuard(policy)

assert guard.check(agent("planner")).allowed
assert guard.check(agent("researcher", "planner")).allowed
assert guard.check(agent("critic", "researcher")).reason == "MAX_AGENT_DEPTH_EXCEEDED"
assert [found.count for found in guard.end().violations] == [3]
