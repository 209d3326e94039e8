"""Prints the target in use, then a line "case state" for many reductions: test_kernels.py compares them.

Run as a program, once for each value of SPINSTAT_TARGET: the target is chosen when the extension is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from oracle import BLOCK

import spinstat

LONG = 2 * BLOCK + 100
LENGTHS = [*range(70), 127, 128, 129, 1000, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, LONG]


def hostile(rng: np.random.Generator) -> dict[str, Any]:
    """Values that show another order of additions, a contraction, flushed subnormals or a lost sign."""
    normal = rng.normal(size=LONG)
    with_holes = normal.copy()
    with_holes[::97] = np.nan
    with_infinities = normal.copy()
    with_infinities[::61] = np.inf
    with_infinities[5::1000] = -np.inf
    return {
        "normal": normal,
        "offset": 1e15 + 100 * normal,
        "magnitudes": np.ldexp(normal, rng.integers(-1000, 1000, LONG)),
        "wide": np.exp(50 * normal),
        "subnormal": rng.integers(-9, 9, LONG) * 5e-324,
        "small": normal * 1e-155,
        "largest": rng.choice([-1.0, 1.0], LONG) * 1.797e308,
        "large": normal * 1e154,
        "zeros": rng.choice([0.0, -0.0], LONG),
        "constant": np.full(LONG, 0.1),
        "outlier first": np.concatenate([[1e300], normal[1:]]),
        "step": np.where(np.arange(LONG) < 5000, normal, 1e9 + normal),
        "arange": np.arange(float(LONG)),
        "nan": with_holes,
        "infinities": with_infinities,
        "nothing finite": rng.choice([np.nan, np.inf, -np.inf], LONG),
    }


def arrays() -> Iterator[tuple[str, Any]]:
    rng = np.random.default_rng(20)
    for name, x in hostile(rng).items():
        yield f"f8 {name}", x
        with np.errstate(over="ignore"):
            yield f"f4 {name}", x.astype("f4")
    for dtype in ("i8", "i4"):
        info = np.iinfo(dtype)
        yield f"{dtype} all", rng.integers(info.min, info.max, LONG, dtype, endpoint=True)
        yield f"{dtype} small", rng.integers(-100, 100, LONG, dtype)
        yield f"{dtype} ends", rng.choice(np.array([info.min, info.max], dtype), LONG)
        yield f"{dtype} offset", info.max // 2 + rng.integers(-100, 100, LONG, dtype)


def main() -> None:
    print(spinstat.target())
    for name, x in arrays():
        for n in LENGTHS:
            for start in (0, 1, 3) if n < 70 else (0, 7):
                part = x[start : start + n]
                print(f"{name}, {part.size} from {start}:", spinstat.moments(part).to_bytes().hex())
        print(f"{name}, every third:", spinstat.moments(x[::-3]).to_bytes().hex())
        several = spinstat.Moments()
        for part in np.array_split(x, 17):
            several.update(part)
        print(f"{name}, in parts:", several.to_bytes().hex())


if __name__ == "__main__":
    main()
