"""What a certificate says, what it must not say, and that `verify` finds every fault.

The stored ones are made by tests/make_certificates.py, which says what each fault is.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpredact import pipeline
from dpredact.certificate import statement, verify
from dpredact.certificate.verify import schema
from dpredact.policy import Policy
from dpredact.promise import view_names
from tests.make_certificates import FAULTS, FOLDER, POLICY, TAGGER, TEXT, released
from tests.pipeline_fakes import WordTagger, reciter, writer

GOOD_TEXT = (FOLDER / "text.txt").read_bytes()


def stored(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.cert.json").read_text(encoding="utf-8"))


# -- the good one, and one per fault ---------------------------------------------------------

LEDGER = "group {}: the ledger does not follow from policy and sizes"
SCHEMA = "the certificate does not fit its schema at {}"
SEEDED = "the draw was seeded (unsafe): the certificate promises nothing"
DELTA = "δ is not the policy's"
SAYS = {
    "changed-text": "the text is not the one that was certified: its SHA-256 differs",
    "changed-assumptions": "the assumptions were changed: they are not those of this policy",
    "changed-epsilon": "group PERSON: ε is stated as 10.4286, and the ledger gives 10.9286",
    "epsilon-of-an-adaptive-group": "group PLACE: ε is stated as 8.5000, and the ledger gives 9",
    "epsilon-zero": "group PERSON: ε is stated as 0, and the ledger gives 10.9286",
    "epsilon-all-lowered": "ε for all groups is stated as 14.6699, and the ledger gives 15.1699",
    "changed-policy": "the policy in the certificate was changed: its digest differs",
    "changed-policy-and-digest": LEDGER.format("PERSON"),
    "not-a-policy": "the policy in the certificate is not a valid policy",
    "empty-ledger": "group PERSON: the ledger is incomplete or not readable",
    "shortened-ledger": LEDGER.format("PERSON"),
    "smaller-cap": LEDGER.format("PERSON"),
    "smaller-range": LEDGER.format("DATE"),
    "smaller-budget": LEDGER.format("PLACE"),
    "higher-order": LEDGER.format("PERSON"),
    "smaller-weight": LEDGER.format("PERSON"),
    "another-kind": SCHEMA.format("predicate/groups/0/ledger/0 (oneOf)"),
    "ledger-of-a-redacted-group": "group CODE: redact has nothing to account for",
    "unknown-version": "this is not a privacy certificate of a version that this dpredact knows "
    "(urn:dpredact:privacy-certificate:v1)",
    "unknown-statement": SCHEMA.format("_type (const)"),
    "extra-field": SCHEMA.format("predicate (additionalProperties)"),
    "lacking-field": SCHEMA.format("predicate (required)"),
    "missing-group": "group DATE of the policy is missing",
    "foreign-group": "it lists groups that the policy does not have, or one twice",
    "group-twice": "it lists groups that the policy does not have, or one twice",
    "another-method": "group PERSON: the method is not the policy's",
    "more-entities": "group PERSON: members or entities are not the policy's",
    "changed-delta": DELTA,
    "delta-zero": DELTA,
    "delta-all-changed": DELTA,
    "lowered-chunk": "the chunks do not add up to max_new_tokens",
    "lowered-chunk-and-total": LEDGER.format("PERSON"),
    "more-tokens-than-the-policy": "more tokens could be drawn than the policy allows",
    "chunk-without-a-view": LEDGER.format("PERSON"),
    "foreign-view": "a chunk names a view that the policy does not have",
    "another-scope": "scope is not the policy's",
    "another-neighbour": "neighbours is not the policy's",
    "another-quantisation": "the draw was quantised in a way that this version does not know",
    "large-vocabulary": "the policy in the certificate cannot be kept with its own sizes",
    "endless-vocabulary": "a number is out of range",
    "unsafe-draw": SEEDED,
    "unsafe-called-safe": SEEDED,
}


def test_the_good_certificate_holds_for_its_text() -> None:
    verdict = verify(GOOD_TEXT, stored("good"))
    assert verdict.ok, verdict.problems
    assert verdict.epsilon == {
        "PERSON": "10.9286", "DATE": "0.8972", "PLACE": "9", "ABSENT": "0", "CODE": "0"
    }  # fmt: skip
    assert (verdict.epsilon_all, verdict.delta) == ("15.1699", "0.00001")
    assert verify(GOOD_TEXT.decode(), stored("good")).ok  # a str is taken as UTF-8


def test_every_stored_fault_is_told_and_every_told_fault_is_stored() -> None:
    names = {f.name.removesuffix(".cert.json") for f in FOLDER.glob("*.cert.json")}
    assert names == {"good", *SAYS} == {"good", "unsafe-draw", *FAULTS}


@pytest.mark.parametrize("name", SAYS)
def test_a_fault_is_found_and_named(name: str) -> None:
    verdict = verify(GOOD_TEXT, stored(name))
    assert not verdict.ok
    assert SAYS[name] in verdict.problems
    assert len(set(verdict.problems)) == len(verdict.problems)


@pytest.mark.parametrize("name", [n for n in FAULTS if n not in ("changed-text",)])
def test_a_fault_differs_from_the_good_certificate_in_that_fault_only(name: str) -> None:
    """The stored fault is the good certificate with that one change, so it is what is found."""
    again = stored("good")
    FAULTS[name](again)
    assert json.loads(json.dumps(again)) == stored(name) != stored("good")


@pytest.mark.parametrize(
    "text",
    [b"", GOOD_TEXT + b"\n", GOOD_TEXT.replace(b"\n", b"\r\n"), GOOD_TEXT[:-1], b"\xff" + GOOD_TEXT],
    ids=["empty", "one more line end", "other line ends", "one byte less", "no text"],
)
def test_any_other_text_is_refused(text: bytes) -> None:
    assert verify(text, stored("good")).problems == (SAYS["changed-text"],)


@pytest.mark.parametrize(
    "certificate",
    [
        {},
        {"predicateType": statement.PREDICATE},
        {"predicateType": statement.PREDICATE, "predicate": None},
        {"predicateType": statement.PREDICATE, "predicate": [1, {"a": None}], "subject": 3},
        {"predicateType": ["urn"]},
    ],
)
def test_what_is_no_certificate_is_refused_without_an_error(certificate: dict[str, Any]) -> None:
    assert not verify(b"", certificate).ok


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Any:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for key, item in enumerate(value):
            yield from _leaves(item, (*path, key))
    else:
        yield path, value


# Fields that no arithmetic can check; a signature guards them (`rewrite --sign`).
UNCHECKED = re.compile(
    r"subject/0/name|predicate/(document|tool/\w+|model/\w+|finished|assumptions/\d+)"
)


@pytest.mark.parametrize(
    "junk", ["1e999", -1, 10**400, 10**17, float("nan"), float("inf"), 1e300, 0, "", None, [], {}, "0.1", True],
    ids=lambda junk: repr(junk)[:8],
)  # fmt: skip
def test_no_field_can_be_replaced_by_junk_unseen_or_with_a_crash(junk: Any) -> None:
    good = stored("good")
    for path, value in _leaves(good):
        if UNCHECKED.fullmatch("/".join(map(str, path))) or junk == value:
            continue
        forged = copy.deepcopy(good)
        place: Any = forged
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = junk
        assert not verify(GOOD_TEXT, forged).ok, path


def test_an_epsilon_stated_too_high_is_found_too() -> None:
    """It would hold, but it is not what this run was certified for."""
    raised = stored("good")
    raised["predicate"]["groups"][0]["epsilon"] = "11.4286"
    assert verify(GOOD_TEXT, raised).problems == (
        "group PERSON: ε is stated as 11.4286, and the ledger gives 10.9286",
    )


def test_problems_quote_nothing_of_a_strangers_file() -> None:
    forged = stored("good")
    forged["predicate"]["groups"][0]["epsilon"] = "<script>Zyxomarker</script>"
    forged["predicate"]["finished"] = "Zyxomarker"
    assert "Zyxomarker" not in " ".join(verify(GOOD_TEXT, forged).problems)


# -- limits that the reader sets --------------------------------------------------------------


def test_an_epsilon_above_the_readers_limit_is_told_for_each_group_and_for_all() -> None:
    assert verify(GOOD_TEXT, stored("good"), max_epsilon=15.17).ok
    found = verify(GOOD_TEXT, stored("good"), max_epsilon=9.5).problems
    assert found == (
        "PERSON: ε 10.9286 is above the limit 9.5",
        "all groups together: ε 15.1699 is above the limit 9.5",
    )
    assert len(verify(GOOD_TEXT, stored("good"), max_epsilon=float("nan")).problems) == 6


def test_kept_words_hold_no_limit() -> None:
    rules = with_keep()
    release = pipeline.rewrite("Ida saw Acme.", rules, tagger=WordTagger({"Ida": "PERSON", "Acme": "ORG"}))
    assert verify(release.data, release.certificate).ok
    (problem,) = verify(release.data, release.certificate, max_epsilon=99).problems
    assert problem.startswith("KEPT: no promise")


def test_the_readers_policy_must_be_the_certificates_word_lists_apart() -> None:
    release = released()
    assert verify(release.data, release.certificate, policy=POLICY).ok
    no_lists = POLICY.model_copy(update={"tagger": POLICY.tagger.model_copy(update={"lists": "x.yaml"})})
    assert verify(release.data, release.certificate, policy=no_lists).ok
    for other in ({"delta": 1e-4}, {"view_reserve": 33}, {"scrub_output": ()}):
        changed = POLICY.model_copy(update=other)
        assert verify(release.data, release.certificate, policy=changed).problems == (
            "it was made under another policy than the one given",
        )


def test_a_certificate_of_an_earlier_version_still_belongs_to_its_policy() -> None:
    """A policy field that did not exist then has its default."""
    certificate = stored("good")
    certificate["predicate"]["policy"].pop("max_span_tokens")
    certificate["predicate"]["policy_sha256"] = statement.policy_digest(certificate["predicate"]["policy"])
    for old in (certificate, stored("good")):
        assert verify(GOOD_TEXT, old, policy=POLICY).ok
        wider = POLICY.model_copy(update={"max_span_tokens": 9})
        assert not verify(GOOD_TEXT, old, policy=wider).ok


# -- certificates without a model ---------------------------------------------------------------


def with_keep() -> Policy:
    return Policy.model_validate(
        {"version": 1, "groups": {
            "PERSON": {"entities": ["PERSON"], "method": "redact"},
            "KEPT": {"entities": ["ORG"], "method": "keep"},
            "other": {"entities": ["ID"], "method": "redact"},
        }}
    )  # fmt: skip


def without_model() -> pipeline.Release:
    tagger = WordTagger({"Ida": "PERSON", "Acme": "ORG"})
    return pipeline.rewrite("Ida works at Acme.", with_keep(), tagger=tagger)


def test_redact_and_keep_are_certified_without_a_model() -> None:
    release = without_model()
    predicate = release.certificate["predicate"]
    assert verify(release.data, release.certificate).ok
    assert predicate["model"] is None and predicate["chunks"] == []
    assert {g["name"]: g["epsilon"] for g in predicate["groups"]} == {
        "PERSON": "0", "KEPT": "none", "other": "0"
    }  # fmt: skip
    assert any("keep" in line for line in predicate["assumptions"])


@pytest.mark.parametrize(
    "keys, value, says",
    [
        (("groups", 1, "epsilon"), "0", "it accounts for groups that have no private view"),
        (("groups", 0, "epsilon"), "3", "it accounts for groups that have no private view"),
        (("groups", 0, "epsilon"), "none", "it accounts for groups that have no private view"),
        (("groups", 1, "method"), "redact", "group KEPT: the method is not the policy's"),
        (("groups", 1, "entities"), ["PERSON"], "group KEPT: members or entities are not the policy's"),
        (("groups", 1, "name"), "OTHER", "the groups are not those of the policy"),
        (("all_groups", "epsilon"), "1", "ε for all groups must be 0 where no group has a private view"),
        (("all_groups", "delta"), "0.5", DELTA),
        (("groups", 0, "delta"), "0.5", DELTA),
        (("mode",), "single", "mode is not the policy's"),
        (("max_new_tokens",), 5, "the chunks do not add up to max_new_tokens"),
    ],
)  # fmt: skip
def test_faults_of_certificates_without_a_model_are_found(keys: tuple, value: Any, says: str) -> None:
    release = without_model()
    place: Any = release.certificate["predicate"]
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    assert says in verify(release.data, release.certificate).problems


def test_a_kept_group_beside_a_private_one_cannot_claim_zero() -> None:
    rules = POLICY.model_dump(mode="json") | {"tagger": {"use": ["patterns"]}}
    rules["groups"]["ABSENT"] = {"entities": ["ORG"], "method": "keep"}
    release = pipeline.rewrite(TEXT, Policy.model_validate(rules), writer(), tagger=TAGGER)
    assert verify(release.data, release.certificate).ok
    (kept,) = [g for g in release.certificate["predicate"]["groups"] if g["name"] == "ABSENT"]
    assert kept["epsilon"] == "none" and kept["ledger"] == []
    kept["epsilon"] = "0"
    assert verify(release.data, release.certificate).problems == (
        "group ABSENT: keep has nothing to account for",
    )


# -- every policy ---------------------------------------------------------------------------

VARIANTS: dict[str, dict[str, Any]] = {
    "groups": {},
    "replace": {"neighbours": "replace"},
    "spans": {"scope": "spans"},
    "tokens": {"placeholder": "token"},
    "surrogates": {"placeholder": "surrogate"},
    "a number for T": {"max_new_tokens": 50, "chunk_tokens": None},
}


def variant(**more: Any) -> Policy:
    return Policy.model_validate(POLICY.model_dump(mode="json") | more)


@pytest.mark.parametrize("name", VARIANTS)
def test_what_the_pipeline_writes_verifies(name: str) -> None:
    rules = variant(**VARIANTS[name])
    release = pipeline.rewrite(TEXT, rules, writer(), tagger=TAGGER)
    verdict = verify(release.data, release.certificate, policy=rules)
    assert verdict.ok, verdict.problems
    assert verdict.epsilon == release.epsilon and verdict.epsilon_all == release.epsilon_all
    again = json.loads(json.dumps(release.certificate))
    assert verify(release.data, again).ok


def test_single_mode_and_products_verify() -> None:
    one = {"method": "cid", "epsilon": 6}
    groups = {"PERSON": {"entities": ["PERSON"], **one}, "DATE": {"entities": ["DATE"], **one},
              "other": {"entities": ["ID"], "method": "redact"}}  # fmt: skip
    for more in ({"mode": "single"}, {"combine": "product"}, {"combine": "product", "neighbours": "replace"}):
        rules = Policy.model_validate({"version": 1, "model": "toy", "max_new_tokens": 20, "groups": groups} | more)
        release = pipeline.rewrite(TEXT, rules, writer(), tagger=TAGGER)
        assert verify(release.data, release.certificate).ok
        names = [g["name"] for g in release.certificate["predicate"]["groups"]]
        assert names[0] == ("PERSON+DATE" if more.get("mode") else "PERSON")
        assert list(view_names(rules)) == names[:-1]


def test_the_schema_is_one_and_knows_no_further_field() -> None:
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(schema())

    def loose(node: Any, path: str) -> list[str]:
        if not isinstance(node, dict):
            return []
        open_here = "properties" in node and node.get("additionalProperties") is not False
        inside = [x for k, v in node.items() for x in (
            loose(v, f"{path}/{k}") if isinstance(v, dict)
            else [y for i in v for y in loose(i, f"{path}/{k}")] if isinstance(v, list) else []
        )]  # fmt: skip
        return [*([path] if open_here else []), *inside]

    assert loose(schema(), "") == []


# -- what it must not say ---------------------------------------------------------------------


def names_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {n for v in value.values() for n in names_in(v)}
    if isinstance(value, list):
        return {n for v in value for n in names_in(v)}
    return set()


def test_it_holds_no_name_for_anything_private() -> None:
    """λ, losses, number of draws, seed, digests of the input, word lists."""
    certificate = released(unsafe_seed=12345).certificate
    words = ("lambda", "mix", "realis", "loss", "left", "remain", "drawn", "draws", "seed", "hmac",
             "input", "original", "source_digest", "lists", "names", "salt", "report")  # fmt: skip
    found = {n for n in names_in(certificate) if any(w in n.lower() for w in words)}
    assert not found
    text = json.dumps(certificate, ensure_ascii=False)
    assert "12345" not in text and "names.yaml" not in text


def test_it_holds_no_digest_of_the_input() -> None:
    text = json.dumps(released().certificate)
    for data in (TEXT, TEXT.strip(), *TEXT.split("\n\n"), "Ida Quennell", "Harrowdale", "4 May"):
        for algorithm in ("md5", "sha1", "sha256", "sha512", "blake2b"):
            digest = hashlib.new(algorithm, data.encode()).hexdigest()
            assert digest not in text and digest[:16] not in text


def test_it_does_not_depend_on_the_private_words() -> None:
    """Other words in the same places, same draw: the same certificate but id and digest."""
    def public(certificate: dict[str, Any]) -> dict[str, Any]:
        bare = copy.deepcopy(certificate)
        bare["subject"][0]["digest"] = bare["predicate"]["document"] = None
        return bare

    # Words of other lengths too: labels stand in their places.
    other = TEXT.replace("Ida Quennell", "Bo Li").replace("4 May", "the 27th of September")
    tagger = WordTagger({"Bo Li": "PERSON", "the 27th of September": "DATE",
                         "ida@quennell.example": "EMAIL", "Harrowdale": "LOCATION"})  # fmt: skip
    one = released()
    two = pipeline.rewrite(other, POLICY, writer(), tagger=tagger)
    assert public(one.certificate) == public(two.certificate)
    assert one.certificate["predicate"]["document"] != two.certificate["predicate"]["document"]


@pytest.mark.parametrize("length", [3, 40])
def test_it_does_not_say_how_many_tokens_were_drawn(length: int) -> None:
    """A text that ends after 3 tokens and one that ends after 40 are certified for the same T."""
    rules = variant(chunk_tokens=None)
    release = pipeline.rewrite(TEXT, rules, reciter("x" * length), tagger=TAGGER)
    predicate = release.certificate["predicate"]
    other = pipeline.rewrite(TEXT, rules, reciter("x" * 25), tagger=TAGGER).certificate["predicate"]
    assert release.finished == "stop"
    for key in ("max_new_tokens", "chunks", "groups", "all_groups", "draw"):
        assert predicate[key] == other[key]


@pytest.mark.parametrize(
    "folder",
    ["/srv/anna/models/tiny", "~/models/tiny", "./tiny", "../up/tiny", "deep/er/tiny",
     "C:\\Users\\anna\\tiny", "D:/anna/tiny", "\\\\server\\anna\\tiny", "/srv/anna/models/tiny/"],
)  # fmt: skip
def test_no_path_of_a_folder_leaves(folder: str) -> None:
    rules = variant(model=folder, tagger={"use": ["patterns", f"gliner:{folder}", f"hf:{folder}"]})
    release = pipeline.rewrite(TEXT, rules, writer(), tagger=TAGGER)
    text = json.dumps(release.certificate)
    assert "anna" not in text and "models" not in text and "up/" not in text and "er/" not in text
    policy = release.certificate["predicate"]["policy"]
    assert policy["model"] == "tiny"
    assert policy["tagger"]["use"] == ["patterns", "gliner:tiny", "hf:tiny"]
    assert verify(release.data, release.certificate, policy=rules).ok


@pytest.mark.parametrize("name", ["smollm2-135m", "some-org/some-model-1.5B"])
def test_names_of_the_catalog_and_the_hub_stay(name: str) -> None:
    assert statement.public_policy(variant(model=name))["model"] == name


def test_the_subject_is_a_file_name_without_its_folder() -> None:
    from dpredact import documents

    document = documents.read(TEXT.encode(), "/srv/anna/letters/note.txt")
    release = pipeline.rewrite(document, POLICY, writer(), tagger=TAGGER)
    assert release.certificate["subject"][0]["name"] == "note.txt"
    assert "anna" not in json.dumps(release.certificate)
    assert str(Path.home()) not in json.dumps(release.certificate)


def test_assumptions_say_what_is_not_covered() -> None:
    told = " ".join(released().certificate["predicate"]["assumptions"])
    for part in ("taggers missed", "skeleton is public", "number for all groups", "refused", "add up"):
        assert part in told
    assert "UNSAFE" not in told
    assert "UNSAFE" in " ".join(released(unsafe_seed=1).certificate["predicate"]["assumptions"])
    assert "how many tokens" in " ".join(statement.assumptions(variant(placeholder="token"), safe=True))
    assert "same person" in " ".join(statement.assumptions(variant(placeholder="surrogate"), safe=True))


# -- alone -----------------------------------------------------------------------------------


def test_verify_works_without_torch_model_or_network() -> None:
    code = (
        "import json, sys\n"
        "from dpredact import certificate\n"
        f"folder = {str(FOLDER)!r}\n"
        "text = open(folder + '/text.txt', 'rb').read()\n"
        "stated = json.load(open(folder + '/good.cert.json', encoding='utf-8'))\n"
        "assert certificate.verify(text, stated, max_epsilon=20).ok\n"
        "heavy = ('torch', 'transformers', 'spacy', 'numpy', 'onnxruntime', 'lxml', 'yaml')\n"
        "print(*[h for h in heavy if h in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not {"torch", "transformers", "spacy", "onnxruntime"} & set(done.stdout.split())


@pytest.mark.parametrize(
    "name, more, code", [("good", [], 0), ("good", ["--max-epsilon", "9"], 1), ("changed-epsilon", [], 1),
                         ("extra-field", ["--json"], 1)],
)  # fmt: skip
def test_the_command_tells_the_same(name: str, more: list[str], code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dpredact", "verify", str(FOLDER / "text.txt"),
         str(FOLDER / f"{name}.cert.json"), *more],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    if code:
        assert any(p in done.stdout for p in (*SAYS.values(), "above the limit"))
