"""maxmargin cache clear: what it deletes and prints."""

from __future__ import annotations

import json

from command import refused, run

from maxmargin.readers.row_cache import open_rows


def test_caches_of_files_and_folders_are_deleted(tmp_path, monkeypatch):
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path in paths:
        path.write_text("1 1:1\n-1 2:1\n")
        open_rows(path)
    result = run("cache", "clear", paths[0])
    assert result.stdout.startswith(f"{paths[0]}.maxmargin-cache: ")
    assert result.stdout.endswith("kB freed\n")
    monkeypatch.chdir(tmp_path)
    freed = json.loads(run("cache", "clear", "--json").stdout)["freed"]
    assert list(freed) == ["b.maxmargin-cache", "c.maxmargin-cache"]
    assert min(freed.values()) > 500
    assert run("cache", "clear", "--cache-dir", tmp_path).stdout == "no cache was found\n"
    assert sorted(tmp_path.iterdir()) == paths
    assert refused("cache", "show") == "maxmargin cache takes the word clear; got show"
