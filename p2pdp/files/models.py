"""The learned model of a run's folder, put into a torch module."""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import Any, Final

import numpy as np

from p2pdp.core.errors import UsageError
from p2pdp.files.reading import read_bytes
from p2pdp.tasks.torch_objective import torch_module

STATE_FILE: Final = "state_dict.npz"
_NOT_WHOLE: Final = (
    ValueError, EOFError, OSError, RuntimeError, TypeError, MemoryError, OverflowError, SyntaxError, TokenError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
_USERS: Final = "users"  # an array beside those of parameters, where there is a model for each user


def load_state_dict(folder: str | Path, module: Any, user: int | None = None) -> Any:
    """Load the parameters of a run's `state_dict.npz` into a module of the same parameters, and return it."""
    torch, place = torch_module(), Path(folder) / STATE_FILE
    try:
        with np.load(io.BytesIO(read_bytes(place)), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except _NOT_WHOLE:
        raise UsageError(f"{place}: is not a whole npz file") from None
    users = arrays.pop(_USERS, None)
    if (users is None) != (user is None):
        said = "each user has a model of its own; name one by user=..." if user is None else "leave user out"
        raise UsageError(f"{place}: holds {'one model' if users is None else 'models of users'}; {said}")
    if users is not None:
        if user not in users:
            raise UsageError(f"{place}: holds no model of user {user}")
        arrays = {name: array[int(np.flatnonzero(users == user)[0])] for name, array in arrays.items()}
    wanted = {name: tuple(one.shape) for name, one in module.named_parameters() if one.requires_grad}
    found = {name: array.shape for name, array in arrays.items()}
    if wanted != found:
        name = min(name for name in {**wanted, **found} if wanted.get(name) != found.get(name))
        raise UsageError(f"{place}: parameter {name} is {found.get(name)} there and {wanted.get(name)} in the module")
    module.load_state_dict({name: torch.from_numpy(np.array(one)) for name, one in arrays.items()}, strict=False)
    return module
