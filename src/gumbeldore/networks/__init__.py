"""What policies are built of. For a problem of your own: `SetPolicy`, `MatrixPolicy` and `SequencePolicy` need feature functions, no network code;
`Block` and `Stack` are the compiled transformer blocks that they are made of."""

from gumbeldore.networks.layers import Block, Stack
from gumbeldore.networks.matrix_transformer import MatrixPolicy, MatrixSize
from gumbeldore.networks.sequence_transformer import SequenceFeatures, SequencePolicy
from gumbeldore.networks.set_transformer import Features, SetPolicy, SetSize

__all__ = [
    "Block",
    "Features",
    "MatrixPolicy",
    "MatrixSize",
    "SequenceFeatures",
    "SequencePolicy",
    "SetPolicy",
    "SetSize",
    "Stack",
]
