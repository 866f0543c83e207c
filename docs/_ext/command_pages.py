"""Generator of the reference page of the command line: every command with its arguments and options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer


def write_page(app: Any) -> None:
    from maxmargin.cli.app import app as commands

    group = typer.main.get_command(commands)
    lines = ["# Command line", "", group.help, "", group.epilog, ""]
    for name, command in group.commands.items():
        lines += [f"## maxmargin {name}", "", command.help.replace("\n", "\n\n"), ""]
        lines += ["```text", f"maxmargin {name} {_usage(command)}".rstrip(), "```", ""]
        rows = [_row(option) for option in command.params if option.name != "help"]
        if rows:
            lines += ["| | | default |", "| --- | --- | --- |", *rows, ""]
    path = Path(app.srcdir) / "api" / "commands.md"
    path.parent.mkdir(exist_ok=True)
    text = "\n".join(lines)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _usage(command: Any) -> str:
    words = [f"{option.name.upper()}" for option in command.params if option.param_type_name == "argument"]
    return " ".join([*words, "[OPTIONS]"])


def _row(option: Any) -> str:
    argument = option.param_type_name == "argument"
    name = option.name.upper() if argument else ", ".join([*option.opts, *option.secondary_opts])
    default = "required" if option.required else _default(option)
    return f"| `{name}` | {(option.help or '').replace('|', '&#124;')} | {default} |"


def _default(option: Any) -> str:
    if isinstance(option.show_default, str):
        return option.show_default
    if option.default is None:
        return ""
    # an argument that is not required has no flags
    if getattr(option, "is_flag", False) and option.secondary_opts:
        return f"`{(option.opts if option.default else option.secondary_opts)[0]}`"
    return "" if option.default is False else f"`{option.default}`"


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", write_page, priority=100)
    return {"parallel_read_safe": True}
