"""maxmargin cache: the rows of large files that earlier commands have kept on disk."""

from __future__ import annotations

from pathlib import Path

from .options import Result, command


@command()
def cache(
    action: str, paths: list[Path] | None = None, *, cache_dir: Path | None = None, as_json: bool = False
) -> Result:
    """Delete the rows that are kept beside large files; `maxmargin cache clear` deletes all in the current folder.

    Parameters
    ----------
    action : str
        clear.
    paths : list of Path
        Data files whose caches are deleted, or the caches themselves; by default all in the folder.
    cache_dir : Path
        The folder of the caches, if they are not beside the files.
    """
    from ..numerics.sizes import size_text
    from ..readers.cache_folder import clear_cache

    if action != "clear":
        raise ValueError(f"maxmargin cache takes the word clear; got {action}")
    freed = clear_cache(paths or None, cache_dir)
    lines = [f"{folder}: {size_text(size)} freed" for folder, size in freed.items()]
    return Result(
        {"freed": {str(folder): size for folder, size in freed.items()}}, lines or ["no cache was found"]
    )
