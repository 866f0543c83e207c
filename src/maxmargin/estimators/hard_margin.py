"""What a hard margin without a separator leaves on its estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..certificates.verdicts import Verdict


def keep_verdicts(model: Any, labels: list[Any], verdicts: list[Verdict | None]) -> None:
    """`verdict_`, by label where there are several problems; no such attribute where each has its separator."""
    if hasattr(model, "verdict_"):
        del model.verdict_
    found = {
        item(label): verdict for label, verdict in zip(labels, verdicts, strict=True) if verdict is not None
    }
    if found:
        model.verdict_ = found if len(labels) > 1 else found[None]


def item(label: Any) -> Any:
    """A label as Python has it."""
    return label.item() if isinstance(label, np.generic) else label
