"""Configuration of the documentation; `hatch run docs` builds it and treats warnings as errors."""

from __future__ import annotations

from warp import __version__

project = "Warp"
author = "The Warp contributors"
project_copyright = author
release = version = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
autodoc_typehints = "description"
html_theme = "furo"
html_title = f"Warp {release}"
nitpicky = False
