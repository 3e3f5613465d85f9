"""The command `otel-loopguard`."""
