r"""Muon: steps whose singular values are all about one, for weight matrices and kernels; Adam for the rest.

Jordan et al. Muon: An optimizer for hidden layers in neural networks. 2024. A kernel counts as a matrix of
outputs by everything else. With gradient G, momentum μ, learning rate η and weight decay w

$$ B \leftarrow \mu B + (1 - \mu) G, \quad X = (1 - \mu) G + \mu B, \quad
   W \leftarrow (1 - \eta w)\,W - \eta \sqrt{\max(1, \text{out}/\text{in})}\; (XX^\top)^{-1/2} X $$

The inverse root is computed on the Gram matrix of the smaller side, and X is multiplied once, at the end. The
authors take five Newton-Schulz steps, each with at least one matrix product. We take Zolotarev's best
approximation by a sum of two inverses, on [ℓ², 1] for ℓ = 0.003:

$$ S^{-1/2} \approx c\,\Big(I + \sum_{j=1}^2 a_j (S + s_j I)^{-1}\Big), \quad S = XX^\top / \|XX^\top\|_F $$

Singular values of X from 0.003 to 1 times that norm's root are moved to within 13 % of one, smaller ones are
multiplied by at most 359. Nakatsukasa and Freund. Computing fundamental matrix decompositions accurately via
the matrix sign function in two iterations. SIAM Review 58(3), 2016.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from lipcert.errors import InputError
from lipcert.nn.shift_mix import OrthogonalParameter
from lipcert.train.optimizers.base import OPTIMIZERS, Parameters, check_rates
from lipcert.train.optimizers.fast_product import is_worthwhile, product
from lipcert.train.optimizers.orthogonal import OrthogonalAdam

# c, and pairs of s_j and a_j.
_SCALE = 0.9123147825660636
_POLES = ((3.56363225e-05, 0.01336232), (1.27264036e-02, 0.22713414))

# The number of rows from which strips of a Gram matrix are faster, and the number of strips.
_LARGE, _STRIPS = 256, 4

# Below this the trace of a Gram matrix counts as zero.
_SMALLEST = 1e-18


@OPTIMIZERS.register("muon", example={"lr": 0.02})
def muon(
    parameters: Parameters,
    head: Collection[nn.Parameter] = (),
    lr: float = 0.02,
    momentum: float = 0.95,
    nesterov: bool = True,
    weight_decay: float = 0.0,
    adam_lr: float = 4e-3,
    adam_betas: tuple[float, float] = (0.9, 0.999),
) -> torch.optim.Optimizer:
    """Make Muon: orthogonalised steps for hidden matrices and kernels, Adam for head, biases and the rest.

    `adam_lr` is Adam's learning rate; a schedule of `lr` shapes both.
    """
    check_rates(lr, weight_decay)
    if not 0 < adam_lr < math.inf:
        raise InputError(f"adam_lr: expected a number > 0, got {adam_lr!r}")
    if not 0 <= momentum < 1:
        raise InputError(f"momentum: expected from 0 to below 1, got {momentum!r}")
    return Muon(parameters, head, lr, momentum, nesterov, weight_decay, adam_lr, adam_betas)


class Muon(OrthogonalAdam):
    """Muon for matrices and kernels, the parameter groups that have a momentum, and Adam for the rest."""

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        head: Collection[nn.Parameter] = (),
        lr: float = 0.02,
        momentum: float = 0.95,
        nesterov: bool = True,
        weight_decay: float = 0.0,
        adam_lr: float = 4e-3,
        adam_betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        params, last = list(params), {id(p) for p in head}
        hidden = [p for p in params if is_matrix(p) and id(p) not in last]
        chosen = {id(p) for p in hidden}
        matrices = {"params": hidden, "lr": lr, "momentum": momentum, "nesterov": nesterov}
        others = {"params": [p for p in params if id(p) not in chosen], "lr": adam_lr}
        super().__init__([matrices, others], betas=adam_betas, weight_decay=weight_decay, fused=True)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one step of Muon and one of Adam."""
        result = None
        if closure is not None:
            with torch.enable_grad():
                result = closure()
        groups = [group for group in self.param_groups if "momentum" in group]
        moved = [[p for p in group["params"] if p.grad is not None] for group in groups]
        gradients = [[p.grad for p in matrices if p.grad is not None] for matrices in moved]
        for p in chain(*moved):  # so that Adam skips them
            p.grad = None
        super().step()
        for group, matrices, own in zip(groups, moved, gradients, strict=True):
            if matrices:
                self._step_matrices(group, matrices, own)
        for p, gradient in zip(chain(*moved), chain(*gradients), strict=True):
            p.grad = gradient
        return result

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Adam's own method would look for its numbers in the state of every matrix.
        torch.optim.Optimizer.__setstate__(self, state)

    def _step_matrices(
        self, group: dict[str, Any], matrices: list[nn.Parameter], gradients: list[Tensor]
    ) -> None:
        for p in matrices:
            if not self.state[p]:
                self.state[p]["momentum"] = torch.zeros_like(p)
        means = [self.state[p]["momentum"] for p in matrices]
        torch._foreach_lerp_(means, gradients, 1 - group["momentum"])
        if group["weight_decay"]:
            torch._foreach_mul_(list[Tensor](matrices), 1 - group["lr"] * group["weight_decay"])
        ahead = torch._foreach_lerp(gradients, means, group["momentum"]) if group["nesterov"] else means
        directions = [x.flatten(1) for x in ahead]
        lengths = [group["lr"] * max(1.0, x.shape[0] / x.shape[1]) ** 0.5 for x in directions]
        subtract_orthogonalised(matrices, directions, lengths)


def is_matrix(parameter: nn.Parameter) -> bool:
    """Return whether Muon moves a parameter: it needs two rows (a kernel's outputs) and two columns."""
    if parameter.ndim < 2 or isinstance(parameter, OrthogonalParameter):
        return False
    return min(parameter.shape[0], parameter[0].numel()) > 1


def subtract_orthogonalised(
    parameters: Sequence[Tensor], directions: Sequence[Tensor], lengths: Sequence[float]
) -> None:
    """Subtract from each parameter its orthogonalised direction times a length."""
    for p, (left, right), length in zip(parameters, _factors(directions), lengths, strict=True):
        if p.is_contiguous() and not is_worthwhile(left, right):  # one product, added where it belongs
            p.view(len(p), -1).addmm_(left, right, alpha=-length)
        else:  # a large one, or a kernel in channels-last order
            p.sub_(product(left, right).view(p.shape), alpha=length)


def orthogonalised(matrices: Sequence[Tensor]) -> list[Tensor]:
    """Return each matrix with all its singular values moved close to one.

    Example:
        >>> torch.linalg.svdvals(orthogonalised([torch.diag(torch.tensor([100.0, 1.0]))])[0])
        tensor([1.1291, 1.0695])
    """
    return [product(left, right) for left, right in _factors(matrices)]


def _factors(matrices: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Return two factors of each orthogonalised matrix, in the order of their product."""
    wide = [x if x.shape[0] <= x.shape[1] else x.T for x in matrices]
    # Gram matrices of one size are inverted together.
    sizes: dict[int, list[int]] = {}
    for i, x in enumerate(wide):
        sizes.setdefault(x.shape[0], []).append(i)
    roots: dict[int, Tensor] = {}
    for places in sizes.values():
        found = _inverse_roots(torch.stack([_gram(wide[i]) for i in places]))
        roots |= dict(zip(places, found, strict=True))
    return [(roots[i], x) if x is wide[i] else (x, roots[i]) for i, x in enumerate(matrices)]


def _gram(x: Tensor) -> Tensor:
    """Return the upper triangle of XXᵀ, zeros below: a CPU computes large ones in strips."""
    rows, width = x.shape[0], x.shape[0] // _STRIPS
    if x.device.type != "cpu" or rows < _LARGE:
        return (x @ x.T).triu()
    gram = x.new_zeros(rows, rows)
    for top in range(0, rows, width):
        end = top + width
        gram[top:end, top:] = product(x[top:end], x[top:].T)
        gram[top:end, top:end].triu_()
    return gram


def _inverse_roots(gram: Tensor) -> Tensor:
    """Approximate the inverse square root of each Gram matrix, (M, m, m), from its upper triangle."""
    # First by the trace: squares of what is very large or small have no place in float32.
    trace = gram.diagonal(dim1=1, dim2=2).sum(1)[:, None, None].clamp_min(_SMALLEST)
    normed = gram / trace
    # Off the diagonal every number counts twice.
    above, diagonal = torch.linalg.matrix_norm(normed), normed.diagonal(dim1=1, dim2=2).norm(dim=1)
    size = (2 * above**2 - diagonal**2).sqrt().clamp_min(_SMALLEST)[:, None, None]
    normed /= size
    root, before = None, 0.0
    for shift, weight in _POLES:
        normed.diagonal(dim1=1, dim2=2).add_(shift - before)
        # The outcome is not looked at, for which a GPU would wait: what is not finite shows in the loss.
        factor = torch.linalg.cholesky_ex(normed, upper=True).L
        part = torch.cholesky_inverse(factor, upper=True).mul_(weight)
        root, before = part if root is None else root.add_(part), shift
    assert root is not None
    root.diagonal(dim1=1, dim2=2).add_(1.0)
    return root.mul_(_SCALE * (trace * size).rsqrt())
