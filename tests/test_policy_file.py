"""Reading policies and word lists: places, near words, and the traps of YAML."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpredact.errors import PolicyError
from dpredact.policy import Policy, find, load, loads, read_yaml

GROUPS = """\
version: 1
groups:
  PERSON: {entities: [PERSON], method: dp-fusion, beta: 0.01, order: 2}
  other: {entities: [ORG], method: redact}
"""  # the next line is line 5


def fault(text: str) -> PolicyError:
    """The error of a policy that must not load."""
    with pytest.raises(PolicyError) as caught:
        loads(text, name="p.yaml")
    return caught.value


def at(text: str, error: PolicyError) -> str:
    """What stands at the place that `error` names."""
    line, column = map(int, error.place.removeprefix("p.yaml:").split(":"))
    return text.split("\n")[line - 1][column - 1 :]


def group(body: str) -> str:
    """A policy whose group P has `body`."""
    return f"version: 1\ngroups:\n  P: {{{body}}}\n  other: {{entities: [ORG], method: redact}}\n"


def test_a_whole_policy_loads_with_its_defaults() -> None:
    """What the file does not say is the documented default."""
    policy = loads(GROUPS)
    assert isinstance(policy, Policy)
    assert policy.groups["PERSON"].beta == 0.01
    assert (policy.scope, policy.delta, policy.untagged) == ("document", 1e-5, "refuse")


@pytest.mark.parametrize(
    ("line", "place", "words"),
    [
        ("untagged: no", "5:11", "`no`"),
        ("tagger: {propagate: off}", "5:21", "`off`"),
        ("tagger: {propagate: Yes}", "5:21", "`Yes`"),
        ("tagger: {language: NO}", "5:20", "`NO`"),
        ("on: 1", "5:1", "true or false"),
        ("scop: document", "5:1", "did you mean `scope`"),
        ("tagger: {propagat: true}", "5:10", "did you mean `propagate`"),
        ("decoding: {top_p: 0.9}", "5:12", "did you mean `top_k`"),
        ("max_new_tokens: {ratio: 1, at_most: 3, most: 9}", "5:40", "unknown key"),
        ("max_new_tokens: {ratio: 1.2}", "5:17", "`at_most` is missing"),
        ("max_new_tokens: {ratio: x, at_most: 3}", "5:25", "a number above 0; found text"),
        ("max_new_tokens: 9.5", "5:17", "a whole number, or {ratio, at_most}; found 9.5"),
        ("max_new_tokens: 0", "5:17", "at least 1; found 0"),
        ("delta: '1e-5'", "5:8", "looks like a number"),
        ("delta: 010", "5:8", "looks like a number"),
        ("delta: 1_0", "5:8", "looks like a number"),
        ("delta: true", "5:8", "found true"),
        ("delta: 2", "5:8", "below 1; found 2"),
        ("delta: .nan", "5:8", "delta"),
        ("decoding: {temperature: .inf}", "5:25", "finite"),
        ("decoding: {temperature: 0}", "5:25", "no privacy"),
        ("model:", "5:7", "found nothing"),
        ("model: [a]", "5:8", "found a list"),
        ("scope: documents", "5:8", "did you mean `document`"),
        ("scrub_output: [EMIAL]", "5:16", "did you mean `EMAIL`"),
        ("scope: document\nscope: document", "6:1", "first is on line 5"),
        ("tagger: {language: en, language: en}", "5:24", "stands twice"),
        ("model: a: b", "5:9", "in quotes"),
        ("model: @x", "5:8", "in quotes"),
        ("model: *x", "5:8", "no anchor"),
        ("\tmodel: x", "5:1", "tab"),
        ("model: 'x", "6:1", "never closed"),
        ("model: [x", "6:1", "never closed"),
        ("   model: x", "5:4", "indentation"),
        ("model: !!python/object:os.system x", "5:8", "tags"),
        ("model: !x y", "5:8", "tags"),
        ("<<: {scope: document}", "5:1", "merge keys"),
        ("? [a]\n: b", "5:3", "a key must be a single word"),
        ("---\nversion: 1", "5:1", "second document"),
        ("model: \x01", "5:8", "control character"),
        ("baseline: {method: dp-promt, window: 5}", "5:20", "did you mean `dp-prompt`"),
        ("baseline: {method: dp-prompt, windw: 5}", "5:31", "did you mean `window`"),
        ("combine: product", "5:10", "product needs range methods"),
    ],
)
def test_faults_have_a_place_and_say_what_is_wrong(line: str, place: str, words: str) -> None:
    """file:line:column of the key or value at fault, in a sentence."""
    error = fault(f"{GROUPS}{line}\n")
    assert error.place == f"p.yaml:{place}"
    assert words in error.message
    assert error.next_step
    assert error.exit_code == 2


@pytest.mark.parametrize(
    ("body", "here", "words"),
    [
        ("entities: PERSON, method: redact", "PERSON,", "a list of entity types; found text"),
        ("entities: [PERSN], method: redact", "PERSN", "did you mean `PERSON`"),
        ("entities: [PERSON, 3], method: redact", "3]", "unknown entity type"),
        ("entities: [], method: redact", "[]", "must not be empty"),
        ("entities: [ORG], method: redact", "[ORG]", "stands in two groups"),
        ("entities: [PERSON], method: fusion", "fusion", "did you mean `dp-fusion`"),
        ("entities: [PERSON]", "{ent", "`method` is missing"),
        ("entities: [PERSON], method: redact, beta: 1", "1}", "takes no beta"),
        ("entities: [PERSON], method: keep, order: 2", "2}", "takes no order"),
        ("entities: [PERSON], method: dp-fusion", "P: {", "exactly one of beta or epsilon"),
        ("entities: [PERSON], method: dp-fusion, beta: 1, epsilon: 1, order: 2", "P: {", "beta and epsilon"),
        ("entities: [PERSON], method: dp-fusion, beta: 1", "1}", "number for order"),
        ("entities: [PERSON], method: dp-fusion, epsilon: 1, order: 1", "1}", "above 1; found 1"),
        ("entities: [PERSON], method: dp-fusion, epsilon: 1, order: best", "best", "above 1, or auto"),
        ("entities: [PERSON], method: dp-fusion, epsilon: -1", "-1}", "at least 0"),
        ("entities: [PERSON], method: dp-fusion, epsilon: 1, pace: 2", "2}", "adaptive only"),
        ("entities: [PERSON], method: dp-fusion, epsilon: 1, max_weight: 2", "2}", "cid only"),
        ("entities: [PERSON], method: dp-fusion, epsilon: 1, max_span_tokens: 2", "2}", "spans only"),
        ("entities: [PERSON], method: dp-fusion, epsilon: 1, weight: 0.4", "0.4", "add up to 0.4"),
    ],
)  # fmt: skip
def test_a_groups_faults_name_the_key_to_change(body: str, here: str, words: str) -> None:
    """Combinations that make no sense are refused, also settings that would do nothing."""
    error = fault(group(body))
    assert words in error.message
    assert at(group(body), error).startswith(here)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("# only a comment\n", "empty"),
        ("Dear Dr Marrowby, thank you\n", "a mapping"),
        ("- a\n- b\n", "a mapping"),
        ("version: 1\n", "`groups` is missing"),
        (GROUPS.replace("version: 1", "version: 2"), "version 1, not 2"),
        (GROUPS.replace("version: 1", "version: '1'"), "the number 1"),
        (GROUPS.replace("version: 1", "version: true"), "the number 1"),
        (GROUPS.replace("version: 1", "version: 1.0"), "the number 1"),
        (GROUPS.replace("version: 1\n", ""), "`version` is missing"),
        ("version: 1\ngroups: {}\n", "must not be empty"),
        ("version: 1\ngroups:\n", "found nothing"),
        ("version: 1\ngroups: {P: }\n", "found nothing"),
        ("version: 1\ngroups: {'P 1': {entities: [PERSON], method: redact}}\n", "group's name"),
        ("version: 1\ngroups: {P: {entities: [PERSON], method: redact}}\n", "LOCATION, ADDRESS"),
    ],
)
def test_what_is_no_policy_is_refused(text: str, words: str) -> None:
    """Empty means refuse; a document given by mistake is not quoted."""
    error = fault(text)
    assert words in error.message
    assert "Marrowby" not in str(error)


def test_all_faults_are_told_in_the_order_of_the_file() -> None:
    """One round of corrections is enough."""
    error = fault(f"{GROUPS}delta: 2\nscop: x\nview_reserve: -1\n")
    assert [e.place for e in (error, *error.others)] == ["p.yaml:5:8", "p.yaml:6:1", "p.yaml:7:15"]


@pytest.mark.parametrize("method", ["dp-prompt", "gaussian", "mask"])
def test_methods_that_this_version_lacks_are_refused_with_those_it_has(method: str) -> None:
    """The sentence says which there are, so nobody has to guess."""
    error = fault(group(f"entities: [PERSON], method: {method}, epsilon: 4"))
    assert "no such method in this version; known: dp-fusion, invisible-ink, cid" in error.message


@pytest.mark.parametrize("number", ["1e-5", "1E-05", "1.0e-5", "0.00001", ".00001", "10e-6", "+1e-5"])
def test_numbers_in_every_usual_form(number: str) -> None:
    """YAML 1.1 reads 1e-5 as text; people mean the number."""
    assert loads(f"{GROUPS}delta: {number}\n").delta == 1e-5


def test_quoted_words_are_words() -> None:
    """Quotes are the way out of the yes/no trap."""
    assert loads(f"{GROUPS}tagger: {{language: 'no'}}\n").tagger.language == "no"


def test_an_anchor_can_be_used_again() -> None:
    """Aliases are ordinary YAML, and errors inside them still have a place."""
    text = (
        "version: 1\ngroups:\n  A: &a {entities: [PERSON], method: redact}\n"
        "  other: {entities: [ORG], method: redact}\ndelta: &d 1e-6\nview_reserve: *d\n"
    )
    assert fault(text).place == "p.yaml:6:15"
    assert loads(text.replace("*d", "7")).delta == 1e-6


def test_alias_bombs_and_deep_nesting_are_bounded() -> None:
    """A file of 500 bytes must not become a billion entries or a full stack."""
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
    )
    assert "expands" in fault(bomb).message
    assert "nested deeper" in fault("[" * 100_000).message
    assert "no anchor" in fault("a: &a [*a]\n").message


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_loads_or_gives_a_policy_error(text: str) -> None:
    """Nothing else gets out of the reader, whatever stands in the file."""
    for whole in (text, f"{GROUPS}{text}", f"{GROUPS}tagger: {{{text}"):
        try:
            loads(whole)
        except PolicyError as error:
            assert error.place.startswith("policy.yaml")


def test_a_marker_word_in_the_wrong_file_is_not_repeated() -> None:
    """A word list or a document passed as a policy may be private from end to end."""
    for text in (
        "Zanzibella: {age: 40}\n",
        "version: Zanzibella\n",
        f"{GROUPS}tagger: {{use: Zanzibella}}\n",
        f"{GROUPS}Zanzibella\n",
        f"{GROUPS}model: *Zanzibella\n",
        f"{GROUPS}scope: Zanzibella\n",
        f"{GROUPS}'Zanzibella: x\n",
        f"{GROUPS}scrub_output: [Zanzibella]\n",
        f"{GROUPS}untagged: !Zanzibella x\n",
        f"{GROUPS}untagged: !Zanzibella!x y\n",
        group("entities: [Zanzibella], method: redact"),
        group("entities: [PERSON], method: Zanzibella"),
    ):
        error = fault(text)
        for each in (error, *error.others):
            assert "Zanzibella" not in str(each)
            assert "Zanzibella" not in repr(each)
            assert each.__cause__ is None


# -- files ------------------------------------------------------------------------------


def test_word_lists_count_from_the_policys_folder(tmp_path: Path) -> None:
    """The policy can be used from any working folder."""
    file = tmp_path / "dpredact.yaml"
    file.write_text(f"{GROUPS}tagger: {{lists: names/ours.yaml}}\n")
    assert load(file).tagger.lists == str(tmp_path / "names" / "ours.yaml")
    file.write_text(f"{GROUPS}tagger: {{lists: /elsewhere/ours.yaml}}\n")
    assert load(file).tagger.lists == "/elsewhere/ours.yaml"
    assert "elsewhere" not in repr(load(file))


@pytest.mark.parametrize(
    ("data", "place", "words"),
    [
        (b"version: 1\nmodel: caf\xe9\n", ":2:11", "not UTF-8"),
        (b"\xff\xfev\x00", ":1:1", "not UTF-8"),
        (b"version: 1\x00\n", ":1:11", "control character"),
        (b"a" * (2 << 20), "", "larger than"),
    ],
)
def test_bytes_that_are_no_policy(tmp_path: Path, data: bytes, place: str, words: str) -> None:
    """No guessing of encodings."""
    file = tmp_path / "p.yaml"
    file.write_bytes(data)
    with pytest.raises(PolicyError, match=words) as caught:
        load(file)
    assert caught.value.place == f"{file}{place}"


def test_a_byte_order_mark_is_no_trouble(tmp_path: Path) -> None:
    """Some editors write one."""
    file = tmp_path / "p.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + GROUPS.replace("\n", "\r\n").encode())
    assert load(file).version == 1


def test_missing_files_and_folders(tmp_path: Path) -> None:
    """The file is named; the sentence says what it is instead."""
    for path, words in ((tmp_path / "none.yaml", "No such file"), (tmp_path, "folder")):
        with pytest.raises(PolicyError, match=words) as caught:
            load(path)
        assert caught.value.place == str(path)


def test_word_lists_keep_every_word_as_written(tmp_path: Path) -> None:
    """Null, No and 007 are names and numbers that people have."""
    file = tmp_path / "lists.yaml"
    file.write_text(
        "deny: [No, Null, 007, 1e5, 2024-01-31, yes, ~, 'x y', 'true', True, true]\nNo:\n  - on\n"
    )
    assert read_yaml(file) == {
        "deny": ["No", "Null", "007", "1e5", "2024-01-31", "yes", "~", "x y", "true", "True", True],
        "No": ["on"],
    }


def test_a_broken_word_list_is_not_quoted(tmp_path: Path) -> None:
    """Its words are the owner's secret."""
    file = tmp_path / "lists.yaml"
    for text in ("deny: [Zanzibella\n", "Zanzibella: 1\nZanzibella: 2\n", "a: *Zanzibella\n"):
        file.write_text(text)
        with pytest.raises(PolicyError) as caught:
            read_yaml(file)
        assert "Zanzibella" not in str(caught.value)
        assert str(file) in caught.value.place


def test_which_policy_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--policy, then DPREDACT_POLICY, then the nearest dpredact.yaml up to the repository."""
    outer, repo = tmp_path / "dpredact.yaml", tmp_path / "repo"
    inner = repo / "a" / "b"
    inner.mkdir(parents=True)
    (repo / ".git").mkdir()
    outer.write_text(GROUPS)
    with pytest.raises(PolicyError, match="no policy") as caught:
        find(start=inner)
    assert "dpredact policy init" in caught.value.next_step
    near = repo / "dpredact.yaml"
    near.write_text(GROUPS)
    assert find(start=inner) == near
    monkeypatch.setenv("DPREDACT_POLICY", str(outer))
    assert find(start=inner) == outer
    assert find(near, start=inner) == near
    with pytest.raises(PolicyError, match="no policy file of this name"):
        find(tmp_path / "none.yaml", start=inner)
