# Python 3.10 or later and make are enough: each recipe makes the environments that it needs, once,
# in the user's cache directory. `which=--oldest-python` takes the oldest Python instead of the newest.
python := $(shell for p in python3 python3.13 python3.12 python3.11 python3.10 \
	$(HOME)/.pyenv/versions/3.1?.*/bin/python3; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo "$$p" && break; done)
in = @$(or $(python),$(error no Python from 3.10 on was found)) scripts/environment.py $(which)
synchronised := $(if $(filter output-sync,$(.FEATURES)),--output-sync)
# Those whose tests belong to every `make test`, and the others.
first-frameworks := openai-agents pydantic-ai langchain
other-frameworks := anthropic crewai autogen google-adk llama-index \
	ag2 agent-framework agno claude-agent-sdk dspy haystack mcp semantic-kernel smolagents strands
frameworks := $(first-frameworks) $(other-frameworks)
# The tests of a framework are called as its environment is; some have others besides.
contracts-of = $(wildcard $(addprefix tests/frameworks/test_,$(subst -,_,$(1))*.py $(also-$(1))))
also-openai-agents := openai_client*.py openai_integration.py agents_integration.py
core := $(wildcard tests/unit tests/properties tests/cases tests/telemetry tests/cli README.md docs otel_loopguard)
# Those that start servers, commands and whole sessions of pytest.
sessions := tests/system tests/plugin

# Those with an integration; a framework whose oldest supported version is also the newest has none.
integrated := $(sort $(foreach each,$(frameworks),$(if $(filter %_integration.py,$(call \
	contracts-of,$(each))),$(each))))

# Those that are tried with the guard alone as well.
alone := $(sort $(foreach each,$(frameworks),$(if $(filter-out %_integration.py,$(call \
	contracts-of,$(each))),$(each))))

benchmarks := $(sort $(wildcard benchmarks/bench_*.py))

.PHONY: dashboards test-dashboards dashboards-picture demo test test-core test-frameworks $(frameworks:%=test-framework-%) test-providers \
	test-clients client-sheets matrix integrations-page $(integrated:%=matrix-%) test-first-frameworks test-system test-oldest test-all-pythons test-core-install pythons coverage \
	lint types docs bench mutants recordings-page rule-pages stopping-rows stopping-page policy-schema \
	telemetry-names alerts bench-peers $(alone:%=stopping-rows-%) $(benchmarks) build requirements clean

test: test-core test-first-frameworks

demo:
	$(in) demo python examples/demo

# From looping agents to pages, without containers, until Ctrl-C, which is for the stack alone; with
# `scenario=everything` the run that trips everything.
.PHONY: stack
stack:
	@interpreter="$$($(python) scripts/environment.py demo)" && \
		exec "$$interpreter" -m scripts.stack $(if $(scenario),--scenario $(scenario))

test-core:
	$(in) test pytest -n auto --dist loadfile $(core)

test-first-frameworks:
	@$(MAKE) --no-print-directory --jobs=3 $(synchronised) $(first-frameworks:%=test-framework-%)

test-frameworks:
	@$(MAKE) --no-print-directory --jobs=3 $(synchronised) $(frameworks:%=test-framework-%)

$(frameworks:%=test-framework-%): test-framework-%:
	$(in) $* pytest $(call contracts-of,$*)

# Google's ADK has the model that is tried on Pythons from 3.11 on only.
test-framework-google-adk: override which =

test-providers:
	$(in) providers pytest -n auto tests/providers

# Official clients for Python and for JavaScript; these need Node 20 or later with its npm.
test-clients:
	$(in) clients python -m scripts.javascript_packages tests/clients/javascript
	$(in) clients pytest tests/clients

# The boards: as generated, of Grafana's types, and with data in every panel. Needs Node as well.
test-dashboards:
	$(in) dashboards python -m scripts.javascript_packages tests/dashboards
	$(in) dashboards python -m scripts.debian_packages prometheus promtool
	$(in) dashboards pytest -n auto --dist loadfile tests/dashboards

# A first build of the collector takes longer than a test may, and so may the environment of the
# agents in the stack, and Debian's packages.
test-system:
	$(in) test python -m scripts.collector_binary
	$(in) test python -m scripts.debian_packages prometheus promtool alertmanager amtool
	$(in) demo python -c pass
	$(in) test pytest -n auto --dist loadfile $(sessions)

test-oldest test-all-pythons: export HYPOTHESIS_PROFILE = brief
coverage: export HYPOTHESIS_PROFILE = thorough

test-oldest: which = --oldest-python
test-oldest:
	$(in) oldest pytest -n auto --dist loadfile $(core) tests/plugin

test-all-pythons: which = --every-python
test-all-pythons:
	$(in) test pytest -n auto --dist loadfile $(core)

test-core-install: which = --every-python
test-core-install:
	$(in) core python -W error -c 'import otel_loopguard as g; g.LoopGuard(); g.LoopGuardSpanProcessor()'

pythons:
	$(in) --list

coverage:
	$(in) test coverage erase
	$(in) test coverage run -m pytest -n auto --dist loadfile $(core)
	$(in) test coverage combine --quiet
	$(in) test coverage report

# With `modules="guard.py detectors/*.py"` those only, with `sample=20` at most so many of each.
mutants:
	$(in) test python -m scripts.mutants $(modules:%='%') $(if $(sample),--sample $(sample))

lint:
	$(in) dev ruff check
	$(in) dev ruff format --check
	$(in) dev lint-imports --no-logo

types:
	$(in) dev pyright
	$(in) dev mypy
	$(in) dev mypy --python-version 3.11 dashboards/generator/*.py

docs:
	$(in) dev sphinx-build --nitpicky --fail-on-warning --quiet docs docs/_build

recordings-page:
	$(in) dev python -m scripts.recordings_page

rule-pages:
	$(in) dev python -m scripts.rule_pages

# What is measured becomes what the tests expect: look at the difference. With
# `frameworks="langchain anthropic"` those only.
stopping-rows:
	@$(MAKE) --no-print-directory $(synchronised) $(alone:%=stopping-rows-%)
	@$(MAKE) --no-print-directory stopping-page

$(alone:%=stopping-rows-%): stopping-rows-%:
	$(in) $* pytest $(call contracts-of,$*) -k TestMatrix --measure

# All ways to run each framework's agents with its integration, on its newest and on its oldest
# supported version: what is measured becomes what the tests expect, and the page.
matrix:
	@$(MAKE) --no-print-directory $(synchronised) $(integrated:%=matrix-%)
	@$(MAKE) --no-print-directory integrations-page

$(integrated:%=matrix-%): matrix-%:
	$(in) $* pytest $(filter %_integration.py,$(call contracts-of,$*)) --every-way --measure
	$(in) $*-oldest pytest $(filter %_integration.py,$(call contracts-of,$*)) --every-way --oldest

integrations-page:
	$(in) dev python -m scripts.integrations_page

dashboards:
	$(in) dashboards python -m dashboards.generator

# Some minutes, and half a gigabyte of packages the first time; not part of CI. Look at each picture.
dashboards-picture:
	$(in) dashboards python -m scripts.board_pictures

stopping-page:
	$(in) dev python -m scripts.stopping_page

# Plays all scripts with the official clients: what they show becomes what the tests expect, and
# the page.
client-sheets:
	$(in) clients python -m scripts.model_clients --measure

policy-schema:
	$(in) dev python -m scripts.policy_schema

telemetry-names:
	$(in) dev python -m scripts.telemetry_names

alerts:
	$(in) dev python -m scripts.grafana_alerts

bench: $(benchmarks)

$(benchmarks):
	$(in) test python $@

bench-peers:
	$(in) peers python -m benchmarks.peers

build:
	$(in) dev hatchling build

requirements:
	$(in) --lock

clean:
	$(in) --clean
	rm -rf dist docs/_build .coverage* .hypothesis .*_cache
