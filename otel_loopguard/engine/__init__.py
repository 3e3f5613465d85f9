"""The engine behind `LoopGuard`: what a run has done, and what its rules make of the next step."""
