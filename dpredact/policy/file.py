"""Reading YAML: the policy file and the owner's word lists. The only door for yaml.

The tree is built here from the parser's events, not by yaml's own constructor: each value
keeps its line and column, and the readings that differ between YAML 1.1 and 1.2 are closed
instead of guessed:

    no, off, yes, on, y, n   an error: booleans are true and false, words are quoted
    1e-5                     a number (YAML 1.1 reads text)
    010, 0x10, 1_000, 1:30   text, so a field that wants a number says so
    2024-01-31               text
    a key that stands twice, tags, merge keys, a second document: errors

Aliases (`*name`) are read, and counted as often as they expand, so a small file cannot
become a large tree. Messages name places and known keys; words of the file are repeated
only where they resemble a known one, since a word list or a document may have been given
by mistake.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml
from pydantic import ValidationError

from dpredact.errors import PolicyError
from dpredact.policy import faults
from dpredact.policy.model import Policy
from dpredact.policy.source import read_text

CHECK = "correct it and run `dpredact policy check` again"

MAX_POLICY_BYTES = 1 << 20
MAX_LIST_BYTES = 1 << 26
MAX_NODES = 2_000_000
MAX_POLICY_NODES = 20_000
MAX_DEPTH = 32

_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
_NULL = ("", "~", "null", "Null", "NULL")
_TRAPS = frozenset({"yes", "no", "on", "off", "y", "n"})
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,32}(?:\.[0-9]{0,32})?|\.[0-9]{1,32})(?:[eE][-+]?[0-9]{1,3})?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")

Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class Tree:
    """A YAML document as plain data, with the place (line, column; from 1) of every part."""

    data: Any = field(repr=False)
    values: dict[Path_, tuple[int, int]] = field(repr=False)
    keys: dict[Path_, tuple[int, int]] = field(repr=False)

    def place(self, path: Path_, *, key: bool = False) -> tuple[int, int]:
        """Where `path` stands; where its nearest parent stands if it is not in the file."""
        if key and path in self.keys:
            return self.keys[path]
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, (1, 1))


# -- what others call -------------------------------------------------------------------


def load(path: str | os.PathLike[str]) -> Policy:
    """The policy in the file `path`. A relative `tagger.lists` counts from its folder.

    Raises PolicyError with `place` = file:line:column.
    """
    path = Path(path)
    return _rooted(loads(read_text(path, MAX_POLICY_BYTES), name=str(path)), path.parent)


def loads(text: str, name: str = "policy.yaml") -> Policy:
    """The policy in `text`; `name` stands in error messages. Raises PolicyError.

    Several faults are told at once: the first as the error, the others in `error.others`.
    """
    policy, found = check(text, name)
    if policy is None:
        first, *others = found
        first.others = tuple(others)
        raise first
    return policy


def check(text: str, name: str = "policy.yaml") -> tuple[Policy | None, list[PolicyError]]:
    """The policy, or every fault in it, in the order of the file."""
    try:
        tree = parse(text, name, scalar=_typed, max_nodes=MAX_POLICY_NODES)
    except PolicyError as error:
        return None, [error]
    if tree.data is None:
        return None, [
            PolicyError(
                "the policy is empty: it would protect nothing",
                next_step="`dpredact policy init demo` writes one to start from",
                place=name,
            )
        ]
    try:
        # Strict JSON rules: a quoted number is not a number and true is not 1, but lists
        # and names stand for tuples and enums.
        return Policy.model_validate_json(json.dumps(tree.data), strict=True), []
    except ValidationError as error:
        found = faults.explain(error.errors(include_url=False), tree.data)
    placed = sorted((tree.place(f.path, key=f.on_key), f.message) for f in found)
    return None, [
        PolicyError(message, next_step=CHECK, place=f"{name}:{line}:{column}")
        for (line, column), message in placed
    ]


def check_file(path: str | os.PathLike[str]) -> tuple[Policy | None, list[PolicyError]]:
    """As `check`, for a file; also, that the word list it names is there to be read."""
    path = Path(path)
    try:
        text = read_text(path, MAX_POLICY_BYTES)
    except PolicyError as error:
        return None, [error]
    policy, found = check(text, str(path))
    if policy is None:
        return None, found
    policy = _rooted(policy, path.parent)
    if policy.tagger.lists:
        try:
            read_yaml(policy.tagger.lists)
        except PolicyError as error:
            return None, [error]
    return policy, []


def read_yaml(path: str | os.PathLike[str]) -> Any:
    """A word list: mappings, lists, and scalars as they are written.

    `No`, `Null`, `007` and `2024-01-31` are words here, so no name turns into a boolean, a
    nothing or a number; only a plain `true` or `false` is a boolean. None stands for an
    empty file only. The content is private:
    errors (PolicyError, place = file:line:column) never repeat any of it.
    """
    path = Path(path)
    text = read_text(path, MAX_LIST_BYTES)
    return parse(text, str(path), scalar=_verbatim, max_nodes=MAX_NODES).data


# -- text -> tree -----------------------------------------------------------------------


def parse(text: str, name: str, *, scalar: Callable[..., Any], max_nodes: int) -> Tree:
    """One YAML document as a Tree. `scalar(value, plain, fail)` reads a scalar."""
    text = text.removeprefix("\ufeff")
    builder = _Builder(name, scalar, max_nodes)
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _error(_syntax(error), name, mark) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        column = error.position - text.rfind("\n", 0, error.position)
        raise PolicyError(
            "a control character that YAML does not allow",
            next_step="remove it",
            place=f"{name}:{line}:{column}",
        ) from None
    return Tree(builder.root, builder.values, builder.keys)


_ABSENT = object()


class _Frame:
    """A mapping or list that is being read."""

    def __init__(self, data: dict[str, Any] | list[Any], path: Path_, anchor: str | None) -> None:
        self.data, self.path, self.anchor = data, path, anchor
        self.key: Any = _ABSENT
        self.size = 1


class _Builder:
    """Puts parser events together; a stack instead of recursion, so depth is a number."""

    def __init__(self, name: str, scalar: Callable[..., Any], max_nodes: int) -> None:
        self.name, self.scalar, self.max_nodes = name, scalar, max_nodes
        self.root: Any = None
        self.values: dict[Path_, tuple[int, int]] = {}
        self.keys: dict[Path_, tuple[int, int]] = {}
        self.stack: list[_Frame] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.total = 0
        self.documents = 0

    def take(self, event: yaml.Event) -> None:
        """One event of the stream."""
        if getattr(event, "tag", None) not in (None, "!"):
            self.fail("tags (!) are not read here; write the value without one", event)
        match event:
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    self.fail("a second document (---) starts here; one file holds one", event)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self.open(event, {} if isinstance(event, yaml.MappingStartEvent) else [])
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                frame = self.stack.pop()
                self.put(event, frame.data, frame.size, frame.anchor, mark=False)
            case yaml.AliasEvent():
                if event.anchor not in self.anchors:
                    self.fail("this alias (*) has no anchor (&) before it", event)
                self.put(event, *self.anchors[event.anchor])
            case yaml.ScalarEvent():
                self.scalar_event(event)

    def open(self, event: yaml.Event, data: dict[str, Any] | list[Any]) -> None:
        if self.wants_key():
            self.fail("a key must be a single word, not a list or a mapping", event)
        if len(self.stack) >= MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH} levels", event)
        path = self.path()
        self.values[path] = _at(event.start_mark)
        self.stack.append(_Frame(data, path, event.anchor))

    def scalar_event(self, event: yaml.ScalarEvent) -> None:
        if self.wants_key():
            self.start_key(event)
            return
        plain = event.style is None

        def fail(message: str) -> NoReturn:
            self.fail(message, event)

        self.put(event, self.scalar(event.value, plain, fail), 1, event.anchor)

    def wants_key(self) -> bool:
        top = self.stack[-1] if self.stack else None
        return top is not None and isinstance(top.data, dict) and top.key is _ABSENT

    def start_key(self, event: yaml.ScalarEvent) -> None:
        frame, key = self.stack[-1], event.value
        if event.style is None and key == "<<":
            self.fail("merge keys (<<) are not read; write the keys out", event)
        if event.style is None and self.scalar is _typed and key.lower() in _TRAPS:
            self.fail("some YAML readers take this key for true or false; quote it", event)
        if key in frame.data:
            line, _ = self.keys[frame.path + (key,)]
            self.fail(f"this key stands twice; the first is on line {line}", event)
        self.keys[frame.path + (key,)] = _at(event.start_mark)
        frame.key = key

    def path(self) -> Path_:
        if not self.stack:
            return ()
        frame = self.stack[-1]
        return frame.path + ((len(frame.data) if isinstance(frame.data, list) else frame.key),)

    def put(
        self, event: yaml.Event, value: Any, size: int, anchor: str | None = None, *, mark: bool = True
    ) -> None:
        """`value` is complete: hand it to the list or mapping around it."""
        if self.wants_key():
            self.fail("a key must be written out, not an alias", event)
        if mark:
            self.values[self.path()] = _at(event.start_mark)
            self.total += size
        if self.total > self.max_nodes:
            self.fail("the file holds (or expands to) more entries than this can be meant to", event)
        if anchor:
            self.anchors[anchor] = (value, size)
        if not self.stack:
            self.root = value
            return
        frame = self.stack[-1]
        frame.size += size
        if isinstance(frame.data, list):
            frame.data.append(value)
        else:
            frame.data[frame.key] = value
            frame.key = _ABSENT

    def fail(self, message: str, event: yaml.Event) -> NoReturn:
        raise _error(message, self.name, event.start_mark)


def _typed(value: str, plain: bool, fail: Callable[[str], NoReturn]) -> Any:
    """A policy's scalar: null, true, false, a number, or text."""
    if not plain:
        return value
    if value in _NULL:
        return None
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    if value.lower() in _TRAPS:
        fail(f"`{value}` is text to one YAML reader and true or false to another; "
             "write true or false, or put the word in quotes")  # fmt: skip
    if _INT.fullmatch(value):
        return int(value)
    if _FLOAT.fullmatch(value) and not _LEADING_ZERO.match(value):
        return float(value)
    if value.lower().lstrip("+-") == ".inf":
        return -math.inf if value.startswith("-") else math.inf
    return math.nan if value.lower() == ".nan" else value


def _verbatim(value: str, plain: bool, fail: Callable[[str], NoReturn]) -> str | bool:
    """A word list's scalar: the words as they stand."""
    return value == "true" if plain and value in ("true", "false") else value


# -- places and files -------------------------------------------------------------------


def _at(mark: yaml.Mark) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1


def _error(message: str, name: str, mark: yaml.Mark | None) -> PolicyError:
    line, column = _at(mark) if mark else (1, 1)
    return PolicyError(message, next_step=CHECK, place=f"{name}:{line}:{column}")


def _syntax(error: yaml.MarkedYAMLError) -> str:
    """What the YAML parser met, without the words of the file."""
    problem = error.problem or ""
    if "'\\t'" in problem:
        return "a tab stands where spaces must be; YAML is indented with spaces only"
    if problem.startswith("found undefined alias"):
        return "this alias (*) has no anchor (&) before it"
    if "mapping values are not allowed" in problem:
        return "a second `:` on one line; put the value in quotes"
    if "cannot start any token" in problem:
        return "a value cannot start with this character; put it in quotes"
    if problem.startswith(("expected <block end>", "did not find expected")):
        return "the indentation does not fit the lines above"
    if "could not find expected ':'" in problem:
        return "a key without `:`"
    if "end of stream" in problem or "<stream end>" in problem:
        return "a quote or bracket is opened and never closed"
    if "expected ',' or" in problem:
        return "a list or mapping in brackets is not closed, or a comma is missing"
    return "this is not valid YAML"


def _rooted(policy: Policy, folder: Path) -> Policy:
    """`policy` with its word list's path made to count from the policy's folder."""
    lists = policy.tagger.lists
    if not lists:
        return policy
    resolved = str((folder / Path(lists).expanduser()).absolute())
    return policy.model_copy(
        update={"tagger": policy.tagger.model_copy(update={"lists": resolved})}
    )
