"""The card of a model: how it came to be, enough to repeat the run and to know what to expect of it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from anyorder.support.installed import version_of

SECTIONS = ("versions", "data", "arguments", "config", "training", "scores")
"""The entries of a card that have entries of their own."""

PACKAGES = ("anyorder", "torch", "numpy", "pandas", "lightgbm")


def make_card(
    modality: str,
    *,
    data: Mapping[str, Any],
    arguments: Mapping[str, Any],
    config: Mapping[str, Any],
    training: Mapping[str, Any],
    scores: Mapping[str, Any],
    **facts: Any,
) -> dict[str, Any]:
    """JSON-ready values: what every modality says, and the ``facts`` that are its own."""
    return {
        "modality": modality,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), **{name: version_of(name) for name in PACKAGES}},
        "data": dict(data),
        "arguments": dict(arguments),
        "config": dict(config),
        "training": dict(training),
        "scores": dict(scores),
        **facts,
    }


def still_improving(card: Mapping[str, Any]) -> str:
    """What a card says of a model that was not done when its training ended; nothing of one that was."""
    training = card.get("training", {})
    if not training.get("still_improving"):
        return ""
    gain = training.get("expected_gain")
    more = f"as long again would gain about {gain:.2g} nats a cell" if isinstance(gain, float) else "give it more time"
    return f"still improving when training ended: {more}"  # by time or by steps
