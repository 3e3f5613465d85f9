"""How Sphinx builds these pages."""

from __future__ import annotations

from importlib.metadata import version as installed_version

project = "otel-loopguard"
author = "The otel-loopguard authors"
project_copyright = "The otel-loopguard authors, Apache-2.0"
version = release = installed_version(project)

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_format = "short"

html_theme = "furo"
html_title = f"otel-loopguard {release}"
