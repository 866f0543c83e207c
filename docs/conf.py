"""How the pages are built: `make docs`. Nothing is fetched from anywhere while they are."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE / "_ext"), str(HERE.parent / "examples")]
# examples and pages find the real data where the tests do
# and commands that pages run are those of this checkout
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")])
os.environ.setdefault("MAXMARGIN_DATA", str(HERE.parent.parent / "shared" / "data"))


import real_data  # noqa: E402

import maxmargin  # noqa: E402

project = "maxmargin"
author = "the maxmargin developers"
version = release = maxmargin.__version__

extensions = [
    "mathml",
    "ran",
    "algorithm_pages",
    "command_pages",
    "reference_pages",
    "docstrings",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
]
templates_path = ["_templates"]
default_role = "py:obj"

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
# `--kernel` and "hinge" are typed as they stand
smartquotes = False
toc_object_entries_show_parents = "hide"
html_math_renderer = "mathml"

autosummary_generate = ["api/index.rst"]
autodoc_default_options = {"members": True, "inherited-members": False}
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

# without the data those examples are shown that need them, but not run
EXAMPLES = sorted((HERE.parent / "examples").glob("plot_*.py"))
RUN = "|".join(
    rf"{path.stem}\.py$"
    for path in EXAMPLES
    if real_data.FOLDER.is_dir() or "real_data" not in path.read_text(encoding="utf-8")
)
if not real_data.FOLDER.is_dir():
    print(f"no real data in {real_data.FOLDER} (set MAXMARGIN_DATA): examples that need them are not run")

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "within_subsection_order": "gallery_order.Reading",
    "filename_pattern": RUN,
    "ignore_pattern": r"(real_data|dynamic_margin)\.py$",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "abort_on_example_error": False,
    "only_warn_on_example_error": True,
    "plot_gallery": True,
    "matplotlib_animations": False,
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
    "thumbnail_size": (400, 280),
}

html_theme = "pydata_sphinx_theme"
html_title = "maxmargin"
html_static_path = ["_static"]
html_css_files = ["maxmargin.css"]
html_sidebars = {"index": [], "explanation/certificates": []}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "maxmargin"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "show_nav_level": 1,
    "navigation_depth": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
copyright = "the maxmargin developers, BSD-3-Clause"
