"""The claim that travels with a release, and how anyone can check it."""

from dpredact.certificate.verify import Verdict, verify

__all__ = ["Verdict", "verify"]
