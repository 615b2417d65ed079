"""What is promised: the policy model and its YAML file."""

from dpredact.policy.model import Decoding, Group, Length, Method, Policy, TaggerSettings

__all__ = ["Decoding", "Group", "Length", "Method", "Policy", "TaggerSettings"]
