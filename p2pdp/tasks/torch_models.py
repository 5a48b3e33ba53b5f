"""Factories of small torch models, as `[task] model` names them: for the samples, and to begin with.

Each returns a fresh module with torch's own first values, which follow from `[task] start`. All take rows of features.
"""

from __future__ import annotations

from typing import Any, Final

USERS: Final = 40
ITEMS: Final = 60
_FACTORS: Final = 4


def digits_network() -> Any:
    """Return a convolutional network of 9,258 numbers for images of 8 by 8 pixels, in rows of 64, of 10 classes."""
    from torch import nn

    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        nn.Flatten(),
        *(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 10)),
    )


def two_features() -> Any:
    """Return a linear model of two features, which is logistic regression with the loss `bce`."""
    from torch import nn

    return nn.Linear(2, 1)


def ratings() -> Any:
    """Return a factorisation of a matrix of ratings: rows of a person's number and an item's number."""
    import torch
    from torch import nn

    class Ratings(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.people = nn.Embedding(USERS, _FACTORS)
            self.items = nn.Embedding(ITEMS, _FACTORS)
            self.middle = nn.Parameter(torch.zeros(()))

        def forward(self, rows: Any) -> Any:
            who, what = rows[:, 0].long(), rows[:, 1].long()
            return (self.people(who) * self.items(what)).sum(dim=1) + self.middle

    return Ratings()
