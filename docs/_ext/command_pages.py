"""Generator of the reference page of the command line: every command with its arguments and options."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write_page(app: Any) -> None:
    from maxmargin.cli.app import parser

    main = parser()
    (commands,) = (action for action in main._actions if hasattr(action.choices, "items"))
    lines = ["# Command line", "", main.description, "", main.epilog, ""]
    for name, command in commands.choices.items():
        lines += [f"## maxmargin {name}", "", command.description, ""]
        words = " ".join(one.metavar for one in command._actions if not one.option_strings)
        lines += ["```text", f"maxmargin {name} {words} [OPTIONS]", "```", "", "| | |", "| --- | --- |"]
        for one in command._actions:
            if one.dest != "help":
                flags = ", ".join(one.option_strings) or one.metavar
                lines.append(f"| `{flags}` | {one.help}{', required' * one.required} |")
        lines.append("")
    path = Path(app.srcdir) / "api" / "commands.md"
    path.parent.mkdir(exist_ok=True)
    text = "\n".join(lines)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", write_page, priority=100)
    return {"parallel_read_safe": True}
