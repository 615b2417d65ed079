"""Rows of a transformers model that decode together, and the cache they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from transformers import cache_utils

from dpredact.errors import ModelError

if TYPE_CHECKING:
    from dpredact.lm.hf import HuggingFaceModel


class HuggingFaceSession:
    """Rows padded on the left to one public width, decoded together with a KV cache."""

    def __init__(
        self, owner: HuggingFaceModel, rows: Sequence[Sequence[int]], width: int, steps: int
    ) -> None:
        self._owner = owner
        device = owner._device
        ids = torch.zeros((len(rows), width), dtype=torch.long)  # (rows, width)
        mask = torch.zeros((len(rows), width + steps), dtype=torch.long)  # (rows, width + steps)
        for index, row in enumerate(rows):
            ids[index, width - len(row) :] = torch.tensor(list(row), dtype=torch.long)
            mask[index, width - len(row) :] = 1
        self._mask = mask.to(device)
        self._length = width
        self._position = mask[:, :width].sum(1).to(device)  # (rows,): next position of each row
        self._steps = steps  # appends still to come
        self._cache = _preallocated_cache(owner._model.config, width + steps)
        positions = (self._mask[:, :width].cumsum(1) - 1).clamp(min=0)
        self._logits = self._forward(ids.to(device), positions)

    @torch.inference_mode()
    def _forward(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        owner = self._owner
        extra: dict[str, Any] = {owner._cache_argument: self._cache}
        if owner._keep_argument:
            extra[owner._keep_argument] = 1
        out = owner._model(
            input_ids=ids,  # (rows, tokens)
            attention_mask=self._mask[:, : self._length],
            position_ids=positions,
            use_cache=True,
            **extra,
        )
        return out.logits[:, -1, :]  # (rows, V)

    def logits(self) -> torch.Tensor:
        return self._logits

    def append(self, ids: Sequence[int]) -> None:
        column = torch.tensor(list(ids), dtype=torch.long, device=self._mask.device)
        self._length += 1
        self._steps -= 1
        self._logits = self._forward(column[:, None], self._position[:, None])
        self._position = self._position + 1

    @torch.inference_mode()
    def keep(self, rows: Sequence[int]) -> None:
        index = torch.tensor(list(rows), dtype=torch.long, device=self._mask.device)
        self._mask = self._mask[index]
        self._position = self._position[index]
        self._logits = self._logits[index]
        self._cache.batch_select_indices(index)

    @torch.inference_mode()
    def join(self, other: HuggingFaceSession) -> None:
        """Both caches side by side, aligned at their newest token; the shorter gets padding.

        Positions were turned into keys when they were written, so moving a key along the
        buffer changes nothing; the mask says what is padding.
        """
        used, steps = max(self._length, other._length), max(self._steps, other._steps)
        masks = [_aligned(s._mask[:, : s._length], used, steps, fill=1) for s in (self, other)]
        self._mask = torch.cat(masks)
        self._position = torch.cat([self._position, other._position])
        self._logits = torch.cat([self._logits, other._logits])
        self._cache = _joined(self._cache, other._cache, used, steps)
        self._length, self._steps = used, steps


class _PreallocatedLayer(getattr(cache_utils, "DynamicLayer", object)):  # type: ignore[misc]
    """Keys and values in one buffer of public size, handed out as views.

    Growing by concatenation copies the whole cache at every token; this does not.
    """

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room
        self._used = 0

    def lazy_initialization(self, key_states: torch.Tensor, *_: Any) -> None:
        self.dtype, self.device = key_states.dtype, key_states.device
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self._key_room = _room_like(key_states, self._room)
            self._value_room = _room_like(value_states, self._room)
        start, end = self._used, self._used + key_states.shape[-2]
        self._key_room[..., start:end, :] = key_states
        self._value_room[..., start:end, :] = value_states
        self._used = end
        self.keys = self._key_room[..., :end, :]
        self.values = self._value_room[..., :end, :]
        return self.keys, self.values

    def take(self, other: _PreallocatedLayer, used: int, steps: int) -> None:
        """Rows of `other` after one's own, both ending at column `used`, room for `steps`."""
        rooms = []
        for mine, theirs in (
            (self._key_room, other._key_room), (self._value_room, other._value_room)
        ):  # fmt: skip
            rows = mine.shape[0] + theirs.shape[0]
            room = mine.new_zeros((rows, mine.shape[1], used + steps, mine.shape[-1]))
            room[: mine.shape[0], :, used - self._used : used] = mine[:, :, : self._used]
            room[mine.shape[0] :, :, used - other._used : used] = theirs[:, :, : other._used]
            rooms.append(room)
        self._key_room, self._value_room = rooms
        self._used, self._room = used, used + steps
        self.keys = self._key_room[..., :used, :]
        self.values = self._value_room[..., :used, :]

    def get_seq_length(self, *_: Any) -> int:
        return self._used

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        self._key_room, self._value_room = self._key_room[indices], self._value_room[indices]
        self.keys = self._key_room[..., : self._used, :]
        self.values = self._value_room[..., : self._used, :]


def _aligned(mask: torch.Tensor, used: int, steps: int, fill: int) -> torch.Tensor:
    """(rows, length) -> (rows, used + steps): padding on the left, `fill` for what is to come."""
    left = mask.new_zeros((mask.shape[0], used - mask.shape[1]))
    right = mask.new_full((mask.shape[0], steps), fill)
    return torch.cat([left, mask, right], dim=1)


def _joined(first: Any, second: Any, used: int, steps: int) -> Any:
    for a, b in zip(first.layers, second.layers, strict=True):
        if not (isinstance(a, _PreallocatedLayer) and isinstance(b, _PreallocatedLayer)):
            raise ModelError(
                "documents cannot share a batch on this model's cache",
                next_step="write one document at a time (--together 1)",
            )
        a.take(b, used, steps)
    return first


def _room_like(states: torch.Tensor, room: int) -> torch.Tensor:
    # Zeros, not uninitialised memory: a masked position still meets 0 × value.
    return states.new_zeros((*states.shape[:-2], room, states.shape[-1]))


def _preallocated_cache(config: Any, room: int) -> Any:
    """A DynamicCache whose plain layers are preallocated; other layer kinds stay as they are."""
    try:
        cache = cache_utils.DynamicCache(config=config)
    except TypeError:  # older releases
        return cache_utils.DynamicCache()
    layers = getattr(cache, "layers", None)
    if layers:
        plain = cache_utils.DynamicLayer
        cache.layers = [_PreallocatedLayer(room) if type(x) is plain else x for x in layers]
    return cache
