"""What is done to one group's row, each with the promise that it keeps (THEORY §2)."""

from dpredact.privacy.mechanisms.fusion import Fusion
from dpredact.privacy.mechanisms.ranges import Clip, Influence, Pointwise

__all__ = ["Clip", "Fusion", "Influence", "Pointwise"]
