"""Every name that the guard writes. The YAML files are the source, the modules are made of it.

    from importlib.resources import files

    files("otel_loopguard.registry").joinpath("metrics.yaml").read_text()

The files have the form of the registries of OpenTelemetry's semantic conventions; `gen_ai.*` and
`error.type` are references to those. Nothing here reads YAML:
`make telemetry-names` does, and writes `names` and `metrics`.
"""
