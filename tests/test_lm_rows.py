"""The embedded model: no row moves because another row's private words change (THEORY §5)."""

from __future__ import annotations

import pytest
import torch

from dpredact import lm
from dpredact.errors import ModelError
from dpredact.lm import catalog

pytestmark = [
    pytest.mark.lm,
    pytest.mark.skipif(not catalog.present("smollm2-135m"), reason="run: dpredact models fetch"),
]

PUBLIC = "The tenant [PERSON] wrote to the office on [DATE] about the leak in the kitchen ceiling."
VIEW = "The tenant {} wrote to the office on [DATE] about the leak in the kitchen ceiling."
DATED = "The tenant [PERSON] wrote to the office on 3 May 2021 about the leak in the kitchen ceiling."
SHORT, LONG = "Ida", "Wilhelmina Featherstonehaugh-Cholmondeley of Abercrombie"


def run(model: object, name: str, steps: int = 6) -> list[torch.Tensor]:
    rows = [model.encode(t) for t in (PUBLIC, VIEW.format(name), DATED)]
    session = model.open(rows, len(rows[0]) + 64, steps)
    seen = [session.logits().clone()]
    for token in model.encode(" The tenant said that")[:steps]:
        session.append([token] * len(rows))
        seen.append(session.logits().clone())
    return seen


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_changing_one_groups_length_and_content_moves_no_other_row(dtype: str) -> None:
    model = lm.load("smollm2-135m", device="cpu", dtype=dtype)
    short, long = run(model, SHORT), run(model, LONG)
    for a, b in zip(short, long, strict=True):
        assert torch.equal(a[0], b[0]), "the public row moved"
        assert torch.equal(a[2], b[2]), "another group's row moved"
        assert not torch.equal(a[1], b[1]), "the changed row should move, or this test sees nothing"


def test_padding_to_the_longest_row_would_move_them() -> None:
    """The fault that the fixed width is there for; if this stops failing, so may the guard."""
    model = lm.load("smollm2-135m", device="cpu", dtype="bfloat16")

    def longest(name: str) -> torch.Tensor:
        rows = [model.encode(t) for t in (PUBLIC, VIEW.format(name), DATED)]
        return model.open(rows, max(map(len, rows)), 2).logits()

    assert not torch.equal(longest(SHORT)[0], longest(LONG)[0])


def test_a_row_alone_and_a_row_kept_from_a_batch_go_on_alike() -> None:
    model = lm.load("smollm2-135m", device="cpu", dtype="float32")
    rows = [model.encode(PUBLIC), model.encode(DATED)]
    width = max(map(len, rows)) + 8
    both, alone = model.open(rows, width, 4), model.open(rows[1:], width, 4)
    assert torch.allclose(both.logits()[1], alone.logits()[0], atol=2e-3)
    both.keep([1])
    token = model.encode(" and")[0]
    both.append([token])
    alone.append([token])
    assert torch.allclose(both.logits()[0], alone.logits()[0], atol=2e-3)


def test_control_tokens_in_a_text_stay_text() -> None:
    model = lm.load("smollm2-135m", device="cpu")
    assert not set(model.encode("a <|im_end|> b <|im_start|>system")) & set(model.eos)
    assert set(model.encode_markup("<|im_end|>")) <= set(model.eos)


def test_what_does_not_fit_the_window_is_refused_by_public_sizes() -> None:
    model = lm.load("smollm2-135m", device="cpu")
    with pytest.raises(ModelError, match="window"):
        model.open([[1, 2, 3]], 9000, 10)


def test_a_local_folder_loads_and_names_itself_without_its_path(tmp_path) -> None:
    import shutil

    folder = tmp_path / "my-model"
    shutil.copytree(catalog.folder("smollm2-135m"), folder)
    (folder / "dpredact.json").unlink()
    model = lm.load(str(folder), device="cpu")
    assert model.name == "my-model"
    assert model.digest.startswith("sha256:")


def test_models_whose_rows_move_each_other_are_refused() -> None:
    from transformers import LlamaConfig, MixtralConfig

    from dpredact.lm.hf import refuse_coupled_rows

    refuse_coupled_rows(LlamaConfig())
    with pytest.raises(ModelError, match="experts"):
        refuse_coupled_rows(MixtralConfig())
    quantised = LlamaConfig()
    quantised.quantization_config = {"quant_method": "bitsandbytes"}
    with pytest.raises(ModelError, match="quantisation"):
        refuse_coupled_rows(quantised)


def test_rows_that_join_later_go_on_as_they_would_alone() -> None:
    model = lm.load("smollm2-135m", device="cpu", dtype="float32")
    first, second = model.encode(PUBLIC), model.encode(DATED + " It was cold.")
    together = model.open([first], len(first) + 8, 5)
    for token in model.encode(" The tenant")[:2]:
        together.append([token])
    alone = model.open([second], len(second) + 30, 6)
    together.join(model.open([second], len(second) + 30, 6))
    for token in model.encode(" said so")[:2]:
        together.append([token, token])
        alone.append([token])
    assert together.logits().shape[0] == 2
    assert torch.allclose(together.logits()[1], alone.logits()[0], atol=2e-3)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_no_row_moves_because_of_another_documents_private_words(dtype: str) -> None:
    model = lm.load("smollm2-135m", device="cpu", dtype=dtype)
    other = model.encode("A note about a bicycle that stood in the hall for a week.")

    def joined(name: str) -> list[torch.Tensor]:
        rows = [model.encode(t) for t in (PUBLIC, VIEW.format(name))]
        session = model.open([other], len(other), 6)
        session.append(model.encode(" The")[:1])
        session.join(model.open(rows, len(rows[0]) + 64, 6))
        seen = [session.logits().clone()]
        for token in model.encode(" letter said"):
            session.append([token] * 3)
            seen.append(session.logits().clone())
        return seen

    for a, b in zip(joined(SHORT), joined(LONG), strict=True):
        assert torch.equal(a[:2], b[:2])
        assert not torch.equal(a[2], b[2])
