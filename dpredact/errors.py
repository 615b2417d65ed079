"""Every error a user can meet: what happened, where, and what to do next.

An error never carries private text. `place` is public by construction: a file name, an
offset, a line, a policy key. The exit codes are those of the command-line contract.
"""

from __future__ import annotations


class DpredactError(Exception):
    """Base of all errors that are shown to a user.

    message: what is wrong, in one sentence, without private text.
    next_step: what the user can do about it, in one sentence.
    place: file, offset, line:column or key; may be empty.
    """

    exit_code = 5
    fatal = False  # True: a job of many documents stops here, rather than at one document

    def __init__(self, message: str, *, next_step: str = "", place: str = "") -> None:
        self.message = message
        self.next_step = next_step
        self.place = place
        super().__init__(message)

    def __str__(self) -> str:
        head = f"{self.place}: {self.message}" if self.place else self.message
        return f"{head}\n  next: {self.next_step}" if self.next_step else head


class UsageError(DpredactError):
    """Wrong arguments or a combination of options that makes no sense."""

    exit_code = 2


class PolicyError(DpredactError):
    """The policy cannot be read, or promises something that cannot be had.

    others: further faults of the same file, told together with this one.
    """

    exit_code = 2
    others: tuple[PolicyError, ...] = ()


class NotCovered(DpredactError):
    """The document was not fully read, tagged or rewritten, so nothing is released."""

    exit_code = 3


class DocumentError(NotCovered):
    """A file that cannot be read completely (encoding, format, damage, encryption)."""


class BudgetExceeded(DpredactError):
    """Going on would spend more than the owner allows."""

    exit_code = 4


class ModelError(DpredactError):
    """A model is missing, damaged or unfit."""

    exit_code = 5


class Missing(DpredactError):
    """An optional part of the installation is needed and absent."""

    exit_code = 5
