"""`python -m otel_loopguard`: the command `otel-loopguard`."""

from __future__ import annotations

from otel_loopguard.cli.__main__ import main

if __name__ == "__main__":
    main()
