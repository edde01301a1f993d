"""What policies are built of. For a problem of your own: `SetPolicy`, `MatrixPolicy` and `SequencePolicy` need feature functions, no network code;
`Block` and `Stack` are the compiled transformer blocks that they are made of. Networks for routes are composed of features: `CanonicalFrame`, ..."""

from gumbeldore.networks.distance_bias import DistanceBias
from gumbeldore.networks.layers import Block, Stack
from gumbeldore.networks.matrix_transformer import MatrixPolicy, MatrixSize
from gumbeldore.networks.routes import CanonicalFrame, RouteFeature, View
from gumbeldore.networks.sequence_transformer import SequenceFeatures, SequencePolicy
from gumbeldore.networks.set_transformer import Features, SetPolicy, SetSize

__all__ = [
    "Block",
    "CanonicalFrame",
    "DistanceBias",
    "Features",
    "MatrixPolicy",
    "MatrixSize",
    "RouteFeature",
    "SequenceFeatures",
    "SequencePolicy",
    "SetPolicy",
    "SetSize",
    "Stack",
    "View",
]
