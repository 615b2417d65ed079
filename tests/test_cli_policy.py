"""`dpredact policy`, `models` and `doctor`: what they print, where, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpredact.cli.main import main
from dpredact.lm import catalog
from dpredact.policy import load, presets


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder that is a repository's root."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    for hook in ("sys.excepthook", "sys.unraisablehook", "threading.excepthook"):
        monkeypatch.setattr(hook, None)
    return tmp_path


def dpredact(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return (int(left.value.code or 0), *capsys.readouterr())


# -- policy -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", presets.PRESETS)
def test_init_writes_a_preset_that_checks(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The default place is where the other commands look."""
    code, out, err = dpredact(capsys, "policy", "init", name)
    assert (code, out) == (0, "")
    assert "dpredact.yaml: written" in err
    assert Path("dpredact.yaml").read_text(encoding="utf-8") == presets.text(name)
    code, out, err = dpredact(capsys, "policy", "check")
    assert (code, out) == (0, "")
    assert "dpredact.yaml: valid. Groups: " in err


def test_init_overwrites_only_when_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A policy is work."""
    Path("dpredact.yaml").write_text("mine")
    code, _, err = dpredact(capsys, "policy", "init", "demo")
    assert code == 2
    assert "already there" in err
    assert "--force" in err
    assert Path("dpredact.yaml").read_text() == "mine"
    assert dpredact(capsys, "policy", "init", "demo", "--force")[0] == 0
    assert load("dpredact.yaml").needs_model


def test_init_to_stdout_and_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    """`-` is stdout, and carries nothing but the file."""
    assert dpredact(capsys, "policy", "init", "paper", "-o", "-")[:2] == (0, presets.text("paper"))
    code, _, err = dpredact(capsys, "policy", "init", "paper", "-o", "no/such/folder.yaml")
    assert code == 2
    assert "no/such/folder.yaml: cannot write" in err


def test_init_names_the_presets(capsys: pytest.CaptureFixture[str]) -> None:
    """--list shows them, a typo is answered with the nearest."""
    listed = dpredact(capsys, "policy", "init", "--list")[1]
    assert [line.split()[0] for line in listed.splitlines()] == list(presets.PRESETS)
    code, _, err = dpredact(capsys, "policy", "init", "strickt")
    assert code == 2
    assert "did you mean `strict`" in err


def test_check_tells_every_fault_once(capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr for people; with --json as one object."""
    text = presets.text("demo").replace("scope:", "scop:").replace("delta: 1e-5", "delta: no")
    Path("p.yaml").write_text(text)
    code, out, err = dpredact(capsys, "policy", "check", "p.yaml")
    assert (code, out) == (2, "")
    assert "`no`" in err  # the trap is found first: nothing after it can be trusted
    Path("p.yaml").write_text(text.replace("delta: no", "delta: 3"))
    code, out, err = dpredact(capsys, "policy", "check", "p.yaml")
    assert code == 2
    assert err.count("error: p.yaml:") == 2
    assert err.count("next:") == 1
    code, out, err = dpredact(capsys, "policy", "check", "p.yaml", "--json")
    told = json.loads(out)
    assert (code, err) == (2, "")
    assert (told["schema"], told["path"], told["valid"]) == (1, "p.yaml", False)
    assert len(told["faults"]) == 2
    assert told["faults"][0]["place"].startswith("p.yaml:")


def test_check_looks_for_the_word_list(capsys: pytest.CaptureFixture[str]) -> None:
    """A policy whose word list is missing would protect less than it says."""
    text = presets.text("redact").replace("tagger: {", "tagger: {lists: ours.yaml, ")
    Path("dpredact.yaml").write_text(text)
    code, _, err = dpredact(capsys, "policy", "check")
    assert code == 2
    assert "ours.yaml: cannot read" in err
    Path("ours.yaml").write_text("deny: [Project Heron]\n")
    assert dpredact(capsys, "policy", "check")[0] == 0


def test_explain_and_schema_are_documents(capsys: pytest.CaptureFixture[str]) -> None:
    """Both go to stdout."""
    Path("dpredact.yaml").write_text(presets.text("demo"))
    code, out, err = dpredact(capsys, "policy", "explain")
    assert (code, err) == (0, "")
    assert "What is not covered" in out
    told = json.loads(dpredact(capsys, "policy", "explain", "--json")[1])
    assert [s["title"] for s in told["sections"]][-1] == "What is not covered"
    schema = json.loads(dpredact(capsys, "policy", "schema")[1])
    assert schema["$id"] == "urn:dpredact:policy:v1"


def test_without_a_policy_the_command_that_writes_one_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit 2, as for any other wrong use."""
    code, _, err = dpredact(capsys, "policy", "explain")
    assert code == 2
    assert "dpredact policy init demo -o dpredact.yaml" in err


# -- models -----------------------------------------------------------------------------


def test_models_list(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the catalog has, and what is here: nothing in an empty cache."""
    monkeypatch.setenv("DPREDACT_CACHE", str(Path.cwd() / "empty"))
    code, out, err = dpredact(capsys, "models", "list")
    assert code == 0
    for name in catalog.ENTRIES:
        assert name in out
    assert "yes" not in out
    assert "empty" in err
    lines = [json.loads(x) for x in dpredact(capsys, "models", "list", "--json")[1].splitlines()]
    assert {x["name"]: x["present"] for x in lines} == dict.fromkeys(catalog.ENTRIES, False)
    assert all(x["schema"] == 1 and len(x["sha256"]) == 64 for x in lines)


def test_models_fetch_refuses_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is downloaded."""
    code, _, err = dpredact(capsys, "models", "fetch", "smollm2-135", "rampart")
    assert code == 2
    assert "did you mean `smollm2-135m`" in err


def test_models_fetch_leaves_what_is_here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Running it twice costs nothing; only what is missing is fetched."""
    fetched: list[str] = []
    monkeypatch.setattr(catalog, "present", lambda name: name == "rampart")
    monkeypatch.setattr(catalog, "fetch", fetched.append)
    code, out, err = dpredact(capsys, "models", "fetch")
    assert (code, out) == (0, "")
    assert sorted(fetched) == sorted(set(catalog.ENTRIES) - {"rampart"})
    assert "rampart: already here" in err


# -- doctor -----------------------------------------------------------------------------


def test_doctor_says_what_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    """Versions, device, number type, models; all that rewrite needs is there in the tests."""
    code, out, err = dpredact(capsys, "doctor", "--json")
    told = json.loads(out)
    assert (code, told["missing"]) == (0, [])
    assert told["schema"] == 1
    assert told["packages"]["torch"]
    assert told["device"] in ("cpu", "mps") or told["device"].startswith("cuda")
    assert told["dtype"] in ("bfloat16", "float16", "float32")
    code, out, err = dpredact(capsys, "doctor")
    assert code == 0
    assert "everything that `rewrite` needs is here" in err
    assert f"python{' '}" in out


def test_doctor_names_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command that brings it, and an exit code for scripts."""
    from dpredact.cli import doctor

    monkeypatch.setenv("DPREDACT_CACHE", str(Path.cwd() / "empty"))
    monkeypatch.setattr(doctor, "_version_of", lambda name: None if name == "torch" else "1.0")
    code, out, err = dpredact(capsys, "doctor")
    assert code == 5
    assert "missing: package torch" in err
    assert "dpredact[lm]" in err
    assert "missing: model smollm2-135m: dpredact models fetch smollm2-135m" in err
    told = json.loads(dpredact(capsys, "doctor", "--json")[1])
    assert told["device"] is None
    assert len(told["missing"]) == 4
