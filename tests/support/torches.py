"""Torch for tests, and small modules; where it is not installed, tests are skipped, or fail where nothing may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from p2pdp.tasks.examples import Examples, examples_of
from tests.support.missing import missing


def torch_here() -> Any:
    try:
        import torch
    except ImportError:
        missing("torch is not installed")
    return torch


def digits_here() -> tuple[Any, Any]:
    """Return the images and digits that scikit-learn ships."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        missing("scikit-learn is not installed")
    features, targets = load_digits(return_X_y=True)
    return features, targets


def rows_of(columns: int, rows: int, classes: int, seed: int = 5) -> Examples:
    random = np.random.default_rng(seed)
    return examples_of(random.random((rows, columns)), random.integers(0, classes, rows).astype(float), None)


def small_network() -> Any:
    """Return a module of two layers, seeded."""
    torch = torch_here()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
