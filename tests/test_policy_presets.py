"""The presets: they load, they are what the repository shows, and they say what they promise."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from dpredact.errors import UsageError
from dpredact.policy import Method, load, loads, presets
from dpredact.policy.explain import explain
from dpredact.policy.model import json_schema

ROOT = Path(__file__).parent.parent
CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))


@pytest.mark.parametrize("name", presets.PRESETS)
def test_the_visible_copy_is_the_shipped_one(name: str) -> None:
    """configs/ shows what `policy init` writes from an installed package."""
    assert (ROOT / "configs" / f"{name}.yaml").read_text(encoding="utf-8") == presets.text(name)


def test_nothing_is_shown_that_is_not_shipped() -> None:
    """No preset stands in configs/ alone, and none in the package alone."""
    shown = {p.stem for p in (ROOT / "configs").glob("*.yaml")}
    shipped = {p.stem for p in (ROOT / "dpredact" / "policy" / "presets").glob("*.yaml")}
    assert shown == shipped == set(presets.PRESETS)


@pytest.mark.parametrize("file", CONFIGS, ids=lambda f: f.stem)
def test_every_config_loads_and_explains_itself(file: Path) -> None:
    """Also those that fit the samples; each starts with a comment for people."""
    policy = load(file)
    assert file.read_text(encoding="utf-8").startswith("# ")
    told = " ".join(s for section in explain(policy) for s in section.sentences)
    for name in policy.groups:
        assert name in told


def test_every_sample_has_a_policy() -> None:
    """Four invented documents of 150 to 400 words, each with the policy that fits it."""
    samples = sorted((ROOT / "samples").glob("*.txt"))
    assert len(samples) == 4
    for sample in samples:
        assert 150 <= len(sample.read_text(encoding="utf-8").split()) <= 400
        assert (ROOT / "configs" / "samples" / f"{sample.stem}.yaml").is_file()


def test_paper_has_the_published_settings() -> None:
    """α = 2, αβ = 0.01, δ = 1e-3, T = 900, `_` placeholders, eight groups."""
    policy = loads(presets.text("paper"))
    assert list(policy.groups) == [
        "PERSON", "CODE", "LOC", "ORG", "DEM", "DATETIME", "QUANTITY", "MISC",
    ]  # fmt: skip
    assert {(g.method, g.order, g.beta) for g in policy.groups.values()} == {
        (Method.DP_FUSION, 2, 0.005)
    }
    assert (policy.delta, policy.max_new_tokens, policy.placeholder) == (1e-3, 900, "token")


def test_redact_needs_no_model() -> None:
    """The preset for build servers."""
    assert not loads(presets.text("redact")).needs_model


def test_an_unknown_preset_is_named_back_as_a_known_one() -> None:
    """A typo costs one line."""
    with pytest.raises(UsageError, match="did you mean `redact`"):
        presets.text("redcat")


def test_the_schema_accepts_the_presets_and_refuses_typos() -> None:
    """Editors that read the schema agree with the loader."""
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for name in presets.PRESETS:
        # yaml itself reads 1e-5 as text; the loader here does not.
        data = yaml.safe_load(presets.text(name).replace("1e-", "1.0e-"))
        assert not list(validator.iter_errors(data)), name
        assert list(validator.iter_errors({**data, "scop": "document"}))
    assert json.loads(json.dumps(schema)) == schema


# -- explain ----------------------------------------------------------------------------

POLICY = """\
version: 1
{top}
groups:
  PERSON: {{entities: [PERSON], {person}}}
  PLACE: {{entities: [LOCATION], method: dp-fusion, epsilon: 4}}
  ORG: {{entities: [ORG], method: keep}}
  other: {{entities: [ID], method: redact}}
"""


def told(top: str = "", person: str = "method: dp-fusion, epsilon: 4") -> str:
    """The explanation as one text."""
    policy = loads(POLICY.format(top=top, person=person))
    return " ".join(s for section in explain(policy) for s in section.sentences)


def test_explain_says_what_each_method_promises() -> None:
    """ε and its factor, rounded up; 0 for redact; none for keep."""
    text = told()
    assert "ε = 4 at δ = 1e-05" in text
    assert "at most 55 times as likely" in text  # e^4 = 54.598…
    assert "ORG (ORG): kept as it is; NO promise" in text
    assert "other (ID): never shown to the model" in text
    assert "at most 0.02 per token (order 2 × beta 0.01)" in told(
        person="method: dp-fusion, beta: 0.01, order: 2"
    )


def test_explain_warns_of_several_groups_and_weak_numbers() -> None:
    """A person in several groups, large ε, large δ, kept words, token lengths."""
    text = told()
    assert "covered by the number for all groups together" in text
    assert "weak promise" not in text
    assert "weak promise" in told(person="method: dp-fusion, epsilon: 12")
    assert "is large" in told("delta: 0.001")
    assert "How many tokens each tagged span has" in told("placeholder: token")
    assert "The words of ORG, which are kept" in text
    single = told("mode: single")
    assert "One number covers all protected words" in single
    assert "all groups together" not in single


def test_explain_knows_the_other_settings() -> None:
    """Neighbours, spending, scope and range methods change the sentences."""
    assert "as without" in told()
    assert "as with any others instead" in told("neighbours: replace")
    assert "where it is needed" in told(person="method: dp-fusion, epsilon: 4, spending: adaptive")
    assert "writes only the replacements" in told("scope: spans")
    assert "clip 2 per token" in told(person="method: invisible-ink, clip: 2")
    assert "never more than 900" in told()
    assert "for comparison only" in told(
        "baseline: {method: dp-prompt, window: 5}\nmax_new_tokens: 9"
    )
    assert "At most 77 tokens are drawn" in told("max_new_tokens: 77")


def test_explain_names_what_is_not_covered() -> None:
    """Missed words, the text around, further runs, time and truth."""
    text = told()
    for words in ("no tagger found", "text around", "again", "How long", "Truth"):
        assert words in text
