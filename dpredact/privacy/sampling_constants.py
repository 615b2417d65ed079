"""The three public numbers of the draw, apart from torch so that `verify` can read them."""

GAMMA_LOG2 = 20  # γ = 2^-20: share of the uniform distribution that is mixed in
RESOLUTION_LOG2 = 62  # weights are integers below 2^62
FLOAT_SLACK_LOG2 = 40  # float64 arithmetic on the way, relative error at most 2^-40
