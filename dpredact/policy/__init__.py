"""What is promised: the policy model and its YAML file."""

from dpredact.policy.file import load, loads, read_yaml
from dpredact.policy.model import Decoding, Group, Length, Method, Policy, TaggerSettings
from dpredact.policy.source import find

__all__ = [
    "Decoding",
    "Group",
    "Length",
    "Method",
    "Policy",
    "TaggerSettings",
    "find",
    "load",
    "loads",
    "read_yaml",
]
