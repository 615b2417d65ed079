"""The torch twin of `dpredact.tagging.trained.Head`: built from Rampart, trained, exported.

Rampart's file holds 4-bit matrices. The layers above the tapped one are unpacked to
floats, trained on, and written as 8-bit integers with one scale for each output row.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper
from torch import nn

from dpredact.tagging.trained import SHAPES

HEADS, LAYERS = 12, 6
_PARTS = {  # our name -> the graph's
    "query": "attention/self/query",
    "key": "attention/self/key",
    "value": "attention/self/value",
    "output": "attention/output/dense",
    "up": "intermediate/dense",
    "down": "output/dense",
}
_NORMS = {"norm1": "attention.output.LayerNorm", "norm2": "output.LayerNorm"}


def unpack(file: Path) -> dict[str, np.ndarray]:
    """float32 weights of a 4-bit BERT: 'layer.N.query.weight' (out, in), '.bias', norms."""
    graph = onnx.load(str(file)).graph
    values = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    matrices = {
        node.name.removesuffix("/MatMul_Q4").rpartition("encoder/")[2]: _floats(node, values)
        for node in graph.node
        if node.op_type == "MatMulNBits"
    }
    out = {}
    for layer in range(LAYERS):
        for name, part in _PARTS.items():
            out[f"layer.{layer}.{name}.weight"] = matrices[f"layer.{layer}/{part}"]
            bias = f"bert.encoder.layer.{layer}.{part.replace('/', '.')}.bias"
            out[f"layer.{layer}.{name}.bias"] = values[bias]
        for name, part in _NORMS.items():
            for kind in ("weight", "bias"):
                out[f"layer.{layer}.{name}.{kind}"] = values[
                    f"bert.encoder.layer.{layer}.{part}.{kind}"
                ]
    return out


def _floats(node: onnx.NodeProto, values: dict[str, np.ndarray]) -> np.ndarray:
    """(N, K) of a MatMulNBits node: two 4-bit numbers a byte, low half first, 8 is zero."""
    at = {a.name: a.i for a in node.attribute}
    rows, block = at["N"], at["block_size"]
    packed = values[node.input[1]].reshape(rows, -1, block // 2)
    scales = values[node.input[2]].reshape(rows, -1, 1)
    if len(node.input) > 3 and node.input[3]:
        raise ValueError("zero points other than 8 are not handled")
    numbers = np.stack([packed & 15, packed >> 4], -1).reshape(rows, -1, block)
    return ((numbers.astype(np.float32) - 8) * scales).reshape(rows, -1)[:, : at["K"]]


class Layer(nn.Module):
    """One BERT layer, as in `trained.Head._layer`."""

    def __init__(self, weights: dict[str, np.ndarray], name: str) -> None:
        super().__init__()
        for part in (*_PARTS, *_NORMS):
            weight = torch.tensor(weights[f"{name}.{part}.weight"])
            bias = torch.tensor(weights[f"{name}.{part}.bias"])
            module = (
                nn.LayerNorm(len(weight), eps=1e-12)
                if part in _NORMS
                else nn.Linear(weight.shape[1], weight.shape[0])
            )
            module.weight.data, module.bias.data = weight, bias
            setattr(self, part, module)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        n, t, width = x.shape
        q, k, v = (
            part(x).view(n, t, HEADS, width // HEADS).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        a = F.scaled_dot_product_attention(
            q, k, v, attn_mask=seen[:, None, None, :], dropout_p=0.1 if self.training else 0.0
        )
        x = self.norm1(x + self.drop(self.output(a.transpose(1, 2).reshape(n, t, width))))
        return self.norm2(x + self.drop(self.down(F.gelu(self.up(x), approximate="tanh"))))


class Net(nn.Module):
    """(n, t, width) hidden, (n, t, 4) shapes, (n, t) seen -> (n, t, classes) logits.

    first: index of the first Rampart layer that is trained on.
    """

    def __init__(self, weights: dict[str, np.ndarray], first: int, classes: int) -> None:
        super().__init__()
        width = len(weights["layer.0.query.bias"])
        # Zero: at the first step the net sees exactly what Rampart saw.
        self.shape = nn.ModuleList([nn.Embedding(k, width) for k in SHAPES])
        for table in self.shape:
            nn.init.zeros_(table.weight)
        self.layer = nn.ModuleList([Layer(weights, f"layer.{i}") for i in range(first, LAYERS)])
        self.out = nn.Linear(width, classes)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor, marks: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        x = x + sum(table(marks[..., i]) for i, table in enumerate(self.shape))
        for layer in self.layer:
            x = layer(x, seen)
        return self.out(self.drop(x))


def export(net: Net) -> dict[str, np.ndarray]:
    """Arrays for head.npz: matrices of the layers as int8 and '.scale', the rest float16/32."""
    out: dict[str, np.ndarray] = {}
    for name, value in net.state_dict().items():
        array = value.detach().float().numpy()
        if name.startswith("shape."):
            out[name.removesuffix(".weight")] = array.astype(np.float16)
        elif array.ndim == 2:
            scale = np.maximum(np.abs(array).max(axis=1), 1e-8) / 127
            out[name] = np.round(array / scale[:, None]).astype(np.int8)
            out[f"{name}.scale"] = scale.astype(np.float32)
        else:
            out[name] = array.astype(np.float32)
    return out
