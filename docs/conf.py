"""Configuration of Sphinx (`make docs`). The build uses no network."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE / "_ext"), str(HERE.parent / "examples")]
# Commands on pages run the package of this checkout. Examples and pages use the same data folder as the tests.
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")])
os.environ.setdefault("MAXMARGIN_DATA", str(HERE.parent.parent / "shared" / "data"))


import real_data  # noqa: E402

import maxmargin  # noqa: E402

project = "maxmargin"
author = "the maxmargin developers"
version = release = maxmargin.__version__

extensions = [
    "mathml",
    "executed_blocks",
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
# straight quotes and double hyphens stay as they are: `--kernel`, "hinge"
smartquotes = False
toc_object_entries_show_parents = "hide"
html_math_renderer = "mathml"

autosummary_generate = ["api/index.rst"]
autodoc_default_options = {"members": True, "inherited-members": False}
autodoc_typehints = "none"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

# Without the data, examples that need them are shown but do not run.
EXAMPLES = sorted((HERE.parent / "examples").glob("plot_*.py"))
RUN = "|".join(
    rf"{path.stem}\.py$"
    for path in EXAMPLES
    if real_data.FOLDER.is_dir() or "real_data" not in path.read_text(encoding="utf-8")
)
if not real_data.FOLDER.is_dir():
    print(f"{real_data.FOLDER} does not exist (set MAXMARGIN_DATA): examples that need it do not run")

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "within_subsection_order": "gallery_order.GalleryOrder",
    "filename_pattern": RUN,
    "ignore_pattern": r"(real_data|dynamic_margin|demo)\.py$",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "abort_on_example_error": False,
    "only_warn_on_example_error": True,
    "plot_gallery": True,
    "capture_repr": (),  # only printed output, not the value of the last expression
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
