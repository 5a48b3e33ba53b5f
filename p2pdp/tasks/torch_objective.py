"""An objective made of a torch module and a loss: per-example gradients by `torch.func`, each clipped by itself.

A module gets rows of features as a float32 tensor [rows, columns] and returns one output a row; a loss compares the
outputs with the targets. Parameters that require a gradient are the model, in the order of `named_parameters()`; all
others, and buffers, are constants that the digest of the start covers.

Gradients are computed in float32, by one thread, so that the same build of torch gives the same bits every time. Norms,
clipping and sums are in float64: whatever a module computes, an example moves the sum by no more than the clip. Rows
are taken in blocks, so memory does not grow with their number.

A gradient must be a function of model and example alone. So the module is taken in evaluation mode, and what is random
or mixes examples while it trains (dropout, batch norm) is refused, as is whatever draws random numbers when it is tried
on a row of zeros. A module that keeps other state of its own is its author's responsibility.

Nothing is promised of the loss, so claims rest on the noise of the user's own gradients (and that of pairs) only.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Bools, Floats
from p2pdp.core.errors import P2pdpError, UsageError
from p2pdp.tasks.examples import Examples
from p2pdp.tasks.objectives import Objective

CROSS_ENTROPY: Final = "cross_entropy"
MSE: Final = "mse"
BCE: Final = "bce"
_SCORES: Final = {CROSS_ENTROPY: "accuracy", BCE: "accuracy", MSE: "r2"}
_BLOCK_NUMBERS: Final = 1 << 22  # of gradients at a time: 16 MiB as they are computed, 32 MiB as they are summed
_BLOCK_ROWS: Final = 256
_DRAWN_ROWS: Final = 32  # where only some rows are chosen: blocks without any are left out

Loss = Callable[[Any, Any], Any]


class _FailedOnRowsError(UsageError):
    """A module raised something of its own on somebody's rows."""


def torch_module() -> Any:
    """Return torch; say how to install it where it is missing."""
    try:
        import torch
    except ImportError:
        raise UsageError("torch is not installed here; pip install 'p2pdp[torch]' installs it") from None
    return torch


class TorchObjective(Objective):
    """`loss` is `cross_entropy`, `mse` or `bce` (of logits), or a callable of outputs and targets.

    torch.func must be able to differentiate it. Training starts at the module's own parameters.
    """

    name = "torch"

    def __init__(self, module: Any, loss: str | Loss = CROSS_ENTROPY) -> None:
        torch = torch_module()
        if not isinstance(module, torch.nn.Module):
            raise UsageError(f"the model must be a torch.nn.Module, and is of type {type(module).__name__}")
        if not callable(loss) and loss not in _SCORES:
            raise UsageError(f"the loss must be {', '.join(_SCORES)} or a callable of outputs and targets")
        _refuse_unfit(torch, module)
        self._module = copy.deepcopy(module).to(device="cpu", dtype=torch.float32).eval()
        self._loss = loss
        self.score_name = None if callable(loss) else _SCORES[loss]
        learned = {name: one.detach() for name, one in self._module.named_parameters() if one.requires_grad}
        self.layout = tuple((name, tuple(one.shape)) for name, one in learned.items())
        fixed = {name: one.detach() for name, one in self._module.named_parameters() if not one.requires_grad}
        self._fixed = fixed | {name: one.detach() for name, one in self._module.named_buffers()}
        self._start = np.concatenate([one.numpy().reshape(-1).astype(np.float64) for one in learned.values()])
        self._classes: int | None = None
        self._columns: int | None = None
        self._per_example: Any = None

    def dimension(self, columns: int) -> int:
        """Return the number of parameters, having tried the module on a row of zeros with so many features."""
        torch = torch_module()
        try:
            with _one_thread(torch):
                zeros = torch.zeros(2, columns)
                output = self._outputs(self._pieces(self._start), zeros)
                self._classes = int(output.shape[-1]) if output.ndim > 1 else 1
                self._columns = columns
                self._gradients(self._pieces(self._start), zeros, torch.zeros(2))
        except P2pdpError:
            raise
        except Exception as error:  # noqa: BLE001  (zeros only: nothing of anybody's data is in the text)
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise UsageError(
                f"the model cannot be tried on a row of {columns} zeros ({type(error).__name__}: {first}); it gets "
                "features as [rows, columns], and torch.func has to be able to differentiate it row by row"
            ) from None
        return len(self._start)

    def start(self, dimension: int) -> Floats:
        return self._start.copy()

    def constants(self) -> bytes:
        digest = hashlib.sha256()
        for name, one in sorted(self._fixed.items()):
            array = np.ascontiguousarray(one.numpy())
            digest.update(repr((name, array.shape, array.dtype.str)).encode() + array.tobytes())
        return digest.digest() if self._fixed else b""

    def arrays(self, model: Floats) -> Mapping[str, Floats]:
        return arrays_of(self.layout, model)

    def gradient(self, model: Floats, examples: Examples) -> Floats:
        return self._summed(model, examples, None) / len(examples)

    def clipped_gradient(self, model: Floats, examples: Examples, clip: float) -> Floats:
        return self.clipped_sum(model, examples, clip) / len(examples)

    def clipped_sum(self, model: Floats, examples: Examples, clip: float, chosen: Bools | None = None) -> Floats:
        return self._summed(model, examples, clip, chosen)

    def check(self, examples: Examples) -> None:
        """Refuse targets that are no classes."""
        if self._columns != examples.features.shape[1]:
            self.dimension(examples.features.shape[1])
        if not self._meant(examples.targets).all():
            assert self._classes is not None
            raise UsageError(f"targets of cross_entropy must be whole numbers from 0 to {self._classes - 1}")

    def _meant(self, targets: Floats) -> Bools:
        """Return of which targets the loss has a meaning."""
        if self._loss != CROSS_ENTROPY or self._classes is None:
            return np.ones(len(targets), dtype=np.bool_)
        return np.asarray((targets >= 0) & (targets < self._classes) & (targets == np.floor(targets)))

    def loss(self, model: Floats, examples: Examples) -> float:
        """Return the mean loss, which is infinite where a target is no class or the module fails on a row."""
        torch = torch_module()
        try:
            each = self._over(model, examples, torch.func.vmap(self._loss_of, in_dims=(None, 0, 0)))
        except _FailedOnRowsError:
            return math.inf
        return float(np.mean(np.where(self._meant(examples.targets), each, math.inf)))

    def score(self, model: Floats, examples: Examples) -> float | None:
        """Return the accuracy, or the explained share of the targets' variance; None for a loss of one's own."""
        if self.score_name is None or not len(examples):
            return None
        try:
            told = self._over(model, examples, lambda pieces, rows, _: self._outputs(pieces, rows))
        except _FailedOnRowsError:
            return None
        targets = examples.targets
        if self._loss == CROSS_ENTROPY:
            return float((told.argmax(axis=1) == targets).mean())
        told = told.reshape(-1)
        if self._loss == BCE:
            return float(((told >= 0.0) == (targets > 0.0)).mean())
        spread = float(targets.var())
        return 1.0 - float(((told - targets) ** 2).mean()) / spread if spread > 0.0 else None

    def _summed(self, model: Floats, examples: Examples, clip: float | None, chosen: Bools | None = None) -> Floats:
        """Return the sum of gradients. All rows of a block are computed in their places, whichever are chosen.

        A row whose gradient is not finite, whose target is no class, or on which the module fails counts as zero: an
        error would tell everybody that it took part.
        """
        torch, total = torch_module(), np.zeros(len(self._start))
        counts = self._counts(examples)
        if chosen is not None:
            counts &= chosen
        with self._guarded(torch, examples):
            pieces = self._pieces(model)
            size = _DRAWN_ROWS if chosen is not None else _BLOCK_ROWS
            for place, rows, targets in self._blocks(torch, examples, size):
                some = torch.from_numpy(counts[place])
                if bool(some.any()):
                    flat = self._flat(torch, pieces, rows, targets)
                    norms = torch.linalg.vector_norm(flat, dim=1)
                    some &= torch.isfinite(norms)
                    least = torch.ones_like(norms) if clip is None else clip / norms.clamp_min(1e-300)
                    shares = torch.where(some, torch.clamp(least, max=1.0), torch.zeros_like(norms))
                    total += (shares @ torch.where(some[:, None], flat, torch.zeros_like(flat))).numpy()
        return total

    def _counts(self, examples: Examples) -> Bools:
        if self._columns != examples.features.shape[1]:
            self.dimension(examples.features.shape[1])
        return self._meant(examples.targets)

    def _flat(self, torch: Any, pieces: Mapping[str, Any], rows: Any, targets: Any) -> Any:
        """Return a row of numbers for each example; where the module fails on a block, what it says of single rows."""
        try:
            found = self._gradients(pieces, rows, targets)
            return torch.cat([found[name].reshape(len(rows), -1) for name, _ in self.layout], dim=1).double()
        except Exception:  # noqa: BLE001  (whatever a module raises for somebody's row)
            if len(rows) == 1:
                return torch.full((1, len(self._start)), math.nan, dtype=torch.float64)
        return torch.cat([self._flat(torch, pieces, rows[k : k + 1], targets[k : k + 1]) for k in range(len(rows))])

    def _over(self, model: Floats, examples: Examples, of: Callable[[Any, Any, Any], Any]) -> Floats:
        """Return what a function gives for each example, block by block."""
        torch = torch_module()
        with self._guarded(torch, examples), torch.no_grad():
            pieces = self._pieces(model)
            blocks = self._blocks(torch, examples, _BLOCK_ROWS)
            parts = [of(pieces, rows, targets).double().numpy() for _, rows, targets in blocks]
        return np.concatenate(parts)

    def _blocks(self, torch: Any, examples: Examples, rows_max: int) -> Iterator[tuple[slice, Any, Any]]:
        size = max(1, min(rows_max, _BLOCK_NUMBERS // len(self._start)))
        meant = np.where(self._meant(examples.targets), examples.targets, 0.0)
        with np.errstate(over="ignore"):  # what is too large for float32 has no finite gradient
            whole = meant.astype(np.float32)
        for begin in range(0, len(examples), size):
            place = slice(begin, begin + size)
            with np.errstate(over="ignore"):
                rows = examples.features[place].astype(np.float32)
            yield place, torch.from_numpy(rows), torch.from_numpy(whole[place])

    def _pieces(self, model: Floats) -> dict[str, Any]:
        torch = torch_module()
        return {name: torch.from_numpy(np.array(one, dtype=np.float32)) for name, one in self.arrays(model).items()}

    def _outputs(self, pieces: Mapping[str, Any], rows: Any) -> Any:
        return torch_module().func.functional_call(self._module, {**self._fixed, **pieces}, (rows,))

    def _loss_of(self, pieces: Mapping[str, Any], row: Any, target: Any) -> Any:
        torch = torch_module()
        output, wanted, functional = self._outputs(pieces, row[None]), target[None], torch.nn.functional
        if self._loss == CROSS_ENTROPY:
            return functional.cross_entropy(output, wanted.long())
        if self._loss == MSE:
            return functional.mse_loss(output.reshape(wanted.shape), wanted)
        if self._loss == BCE:
            return functional.binary_cross_entropy_with_logits(output.reshape(wanted.shape), (wanted > 0.0).float())
        assert callable(self._loss)
        return self._loss(output, wanted).reshape(())

    def _gradients(self, pieces: Mapping[str, Any], rows: Any, targets: Any) -> Mapping[str, Any]:
        if self._per_example is None:
            func = torch_module().func
            self._per_example = func.vmap(func.grad(self._loss_of), in_dims=(None, 0, 0), randomness="error")
        found: Mapping[str, Any] = self._per_example(pieces, rows, targets)
        return found

    @contextmanager
    def _guarded(self, torch: Any, examples: Examples) -> Iterator[None]:
        """Run a module on one thread; what it raises is replaced, for its text may hold a value."""
        if self._columns != examples.features.shape[1]:
            self.dimension(examples.features.shape[1])
        try:
            with _one_thread(torch):
                yield
        except P2pdpError:
            raise
        except Exception as error:  # noqa: BLE001  (its text may hold a value)
            raise _FailedOnRowsError(
                f"the model failed on a user's rows, with an error of type {type(error).__name__}"
            ) from None

    def __repr__(self) -> str:
        return f"TorchObjective({type(self._module).__name__}, {len(self._start)} numbers)"


def torch_objective(module: Any, loss: str | Loss = CROSS_ENTROPY) -> Objective:
    """Return an objective for `task=`: a torch module and a loss, with per-example gradients that are clipped each.

    `module` is an `nn.Module` that gets rows of features; learning starts at its present parameters, and those that
    require no gradient stay as they are. `loss` is "cross_entropy", "mse", "bce" (of logits), or a callable of outputs
    and targets. Raises `UsageError` for modules whose gradients would be random or mix examples.
    """
    return TorchObjective(module, loss)


def arrays_of(layout: tuple[tuple[str, tuple[int, ...]], ...], model: Floats) -> dict[str, Floats]:
    """Return the model's numbers by the names and shapes of parameters; a leading axis of users is kept."""
    found, begin = {}, 0
    for name, shape in layout:
        end = begin + math.prod(shape)
        found[name] = model[..., begin:end].reshape((*model.shape[:-1], *shape))
        begin = end
    return found


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _refuse_unfit(torch: Any, module: Any) -> None:
    """Refuse modules whose gradients would be random or mix examples, and parameters that are no vectors of floats."""
    nn = torch.nn
    droppers = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
    mixers = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
    for name, one in module.named_modules():
        where = f"{name or 'the model'} ({type(one).__name__})"
        if isinstance(one, mixers) or getattr(one, "track_running_stats", False):
            raise UsageError(f"{where} mixes the examples of a batch; use GroupNorm or LayerNorm instead")
        drops = getattr(one, "p" if isinstance(one, droppers) else "dropout", 0.0)
        if (isinstance(drops, float) and drops > 0.0) or isinstance(one, nn.RReLU | nn.FractionalMaxPool2d):
            raise UsageError(f"{where} draws random numbers; a gradient must follow from model and example alone")
    parameters = dict(module.named_parameters())
    for name, one in parameters.items():
        if isinstance(one, nn.parameter.UninitializedParameter):
            raise UsageError(f"parameter {name} has no shape yet; give the layer its sizes")
        if not one.dtype.is_floating_point:
            raise UsageError(f"parameter {name} holds {one.dtype}; only real floats can be learned")
    if not any(one.requires_grad and one.numel() for one in parameters.values()):
        raise UsageError("the model has no parameter to learn")
