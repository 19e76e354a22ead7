r"""RKO: reshaped kernel orthogonalisation, a convolution that multiplies patches by an orthonormal matrix.

Li, Haque, Anil, Lucas, Grosse, Jacobsen. Preventing Gradient Attenuation in Lipschitz Constrained
Convolutional Networks. NeurIPS 2019; Serrurier et al. CVPR 2021.

$$ \|K * x\|_2 \le \frac{1}{\sqrt r} \Big(\sum_{\text{patches } p} \|p\|^2\Big)^{1/2} \le \|x\|_2 $$

r is the largest number of patches that share a pixel. Where kernel and stride are equal patches share none,
and the layer is orthogonal if its channels allow.

Also in orthogonium.
"""

from __future__ import annotations

from lipcert.bounds import rule
from lipcert.nn.bases.conv2d import DerivedConvRule
from lipcert.nn.bases.derived import Built
from lipcert.nn.bjorck import BjorckConv2d


class RKOConv2d(BjorckConv2d):
    """Take the kernel of `BjorckConv2d`, with the constant 1 in training; orthogonal if stride = side."""


@rule(
    RKOConv2d,
    examples=[
        lambda: (RKOConv2d(3, 4, 3, padding=1), (3, 6, 6)),
        lambda: (RKOConv2d(2, 8, 2, stride=2, bias=False), (2, 6, 4)),
        lambda: (RKOConv2d(4, 4, 3, stride=2, dilation=2, groups=2, padding=2), (4, 7, 7)),
        lambda: (RKOConv2d(2, 3, 3, padding=1, padding_mode="circular"), (2, 2, 2)),
    ],
)
class RKORule(Built, DerivedConvRule):
    """The constant is at most 1, up to rounding error."""
