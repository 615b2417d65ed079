"""The seeds of this work as one list of methods, and the figures published for them.

The published ones are another model's (Qwen 2.5 7B Instruct), other documents and another
attacker budget: they stand beside the table, never in it.
"""

from __future__ import annotations

# (name in the table, method). αβ = 0.01 and 0.10 at α = 2 as in the paper: β = 0.005, 0.05.
PAPER: tuple[tuple[str, str], ...] = (
    ("original", "original"),
    ("NER masking", "masked"),
    ("paraphrase, undefended", "paraphrase"),
    ("rewritten from the public view", "public"),
    ("DP-Decoding λ=0.9", "dp-decoding:weight=0.9"),
    ("DP-Prompt w=50 T=1.75", "dp-prompt:window=50,temperature=1.75"),
    ("DP-Fusion multi αβ=0.01", "dp-fusion:beta=0.005,order=2,present=true"),
    ("DP-Fusion multi αβ=0.10", "dp-fusion:beta=0.05,order=2,present=true"),
    ("DP-Fusion single αβ=0.01", "dp-fusion:beta=0.005,order=2,mode=single"),
    ("DP-Fusion single αβ=0.10", "dp-fusion:beta=0.05,order=2,mode=single"),
    ("InvisibleInk product ε=16", "invisible-ink:epsilon=16,combine=product"),
    ("bounded CID product ε=16", "cid:epsilon=16,combine=product"),
    ("adaptive DP-Fusion ε=16", "dp-fusion:epsilon=16,spending=adaptive,pace=16,present=true"),
    ("spans scope ε=16", "dp-fusion:epsilon=16,scope=spans,max_span_tokens=8"),
)

# name -> (perplexity, LOSS attack success at |C| = 5), DP-Fusion (Thareja et al. 2025).
FIGURES: dict[str, tuple[float, float]] = {
    "original": (1.03, 0.6267),
    "NER masking": (1.46, 0.2767),
    "DP-Decoding λ=0.9": (3.96, 0.66),
    "DP-Prompt w=50 T=1.75": (8.44, 0.2867),
    "DP-Fusion multi αβ=0.01": (1.459, 0.26),
    "DP-Fusion multi αβ=0.10": (1.426, 0.2933),
}
