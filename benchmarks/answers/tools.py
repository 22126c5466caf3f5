"""What is asked: our presets and the settings of our fronts, and the methods of the peers."""

from __future__ import annotations

from typing import Any

FRONTS = ("breast_cancer", "sonar", "spambase")
PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("", {}),
    "close": ("close", {}),
    "few": ("few", {}),
    "typical": ("typical", {}),
    "stable": ("stable", {}),
}
END = "ours, close, theta 1e6"  # where the path ends: at the prototype
THETAS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
NOISES = (0.02, 0.05, 0.2, 0.3, 0.4, 0.6, 0.8)
SHARES = (0.25, 0.5, 0.75, 0.9, 1.0)
PRICES = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0)
FLOORS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
CONFIDENCES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.4)


def settings() -> dict[str, tuple[str, dict[str, Any]]]:
    """The settings of our fronts, by name: a preset and what is changed in it."""
    found = dict(PRESETS)
    found |= {f"close, theta {value:g}": ("close", {"theta": value}) for value in THETAS}
    found |= {f"close, few_changes {value:g}": ("close", {"few_changes": value}) for value in PRICES}
    found |= {f"close, min_typicality {value:g}": ("close", {"min_typicality": value}) for value in FLOORS}
    found |= {f"close, min_stability {value:g}": ("close", {"min_stability": value}) for value in SHARES}
    found |= {
        f"close, stable at noise {value:g}": ("close", {"min_stability": 0.9, "noise": value}) for value in NOISES
    }
    found |= {
        f"few_changes 3, stable at noise {value:g}": ("", {"few_changes": 3.0, "min_typicality": 0.0, "noise": value})
        for value in NOISES
    }
    found |= {
        f"close, few_changes {price:g}, confidence {value:g}": (
            "close",
            {"few_changes": price, "min_confidence": value, "strict": False},
        )
        for price in (0.0, 3.0)
        for value in CONFIDENCES
    }
    found |= {f"default, noise {value:g}": ("", {"noise": value}) for value in NOISES}
    found |= {f"default, theta {value:g}": ("", {"theta": value}) for value in THETAS}
    found |= {f"default, few_changes {value:g}": ("", {"few_changes": value}) for value in (0.0, 0.5, 2.0, 5.0)}
    found[END.removeprefix("ours, ")] = ("close", {"theta": 1e6, "polish": False})
    return found


# peer: its methods with the number of rows that each is given; the slow ones get fewer
PEERS: dict[str, dict[str, int]] = {
    "nice": {"NICE none": 60, "NICE sparsity": 60, "NICE proximity": 60, "NICE plausibility": 60},
    "treecf": {"treecf": 60},
    "dice": {"DiCE random": 60},
    "alibi": {"alibi L1+L2+proto": 10},
}
SECONDS = 60  # of processor time, the most that a peer may take for one row


def methods_of(peer: str, data: str, kind: str) -> dict[str, int]:
    """The methods of a peer that are asked in a case: all where there are fronts, else NICE proximity; trees alone."""
    if kind not in ("xgboost", "forest"):
        return {}
    return PEERS[peer] if data in FRONTS else {"NICE proximity": 60} if peer == "nice" else {}
