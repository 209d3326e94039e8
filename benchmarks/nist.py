"""The univariate sets of NIST's Statistical Reference Datasets, with certified mean and standard deviation.

Source: https://www.itl.nist.gov/div898/strd/univ/homepage.html, a work of the United States government. The
four NumAcc sets are made by their rule. `check` recomputes every certified value exactly, so that a slip in
copying shows. PiDigits is computed, and its mean and deviation are those of the true digits: the mean that
NIST certifies for its own listing is 4.5348, which is not that of the first 5,000 digits of pi (4.5358).
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

LOTTERY = """
162 671 933 414 788 730 817 33 536 875 670 236 473 167 877 980 316 950 456 92 517 557 956 954 104 178 794 278
147 773 437 435 502 610 582 780 689 562 964 791 28 97 848 281 858 538 660 972 671 613 867 448 738 966 139 636
847 659 754 243 122 455 195 968 793 59 730 361 574 522 97 762 431 158 429 414 22 629 788 999 187 215 810 782
47 34 108 986 25 644 829 630 315 567 919 331 207 412 242 607 668 944 749 168 864 442 533 805 372 63 458 777
416 340 436 140 919 350 510 572 905 900 85 389 473 758 444 169 625 692 140 897 672 288 312 860 724 226 884 508
976 741 476 417 831 15 318 432 241 114 799 955 833 358 935 146 630 830 440 642 356 373 271 715 367 393 190 669
8 861 108 795 269 590 326 866 64 523 862 840 219 382 998 4 628 305 747 247 34 747 729 645 856 974 24 568 24
694 608 480 410 729 947 293 53 930 223 203 677 227 62 455 387 318 562 242 428 968
"""

LEW = """
-213 -564 -35 -15 141 115 -420 -360 203 -338 -431 194 -220 -513 154 -125 -559 92 -21 -579 -52 99 -543 -175
162 -457 -346 204 -300 -474 164 -107 -572 -8 83 -541 -224 180 -420 -374 201 -236 -531 83 27 -564 -112 131
-507 -254 199 -311 -495 143 -46 -579 -90 136 -472 -338 202 -287 -477 169 -124 -568 17 48 -568 -135 162 -430
-422 172 -74 -577 -13 92 -534 -243 194 -355 -465 156 -81 -578 -64 139 -449 -384 193 -198 -538 110 -44 -577
-6 66 -552 -164 161 -460 -344 205 -281 -504 134 -28 -576 -118 156 -437 -381 200 -220 -540 83 11 -568 -160
172 -414 -408 188 -125 -572 -32 139 -492 -321 205 -262 -504 142 -83 -574 0 48 -571 -106 137 -501 -266 190
-391 -406 194 -186 -553 83 -13 -577 -49 103 -515 -280 201 300 -506 131 -45 -578 -80 138 -462 -361 201 -211
-554 32 74 -533 -235 187 -372 -442 182 -147 -566 25 68 -535 -244 194 -351 -463 174 -125 -570 15 72 -550
-190 172 -424 -385 198 -218 -536 96
"""

MAVRO = """
2.00180 2.00170 2.00180 2.00190 2.00180 2.00170 2.00150 2.00140 2.00150 2.00150 2.00170 2.00180 2.00180
2.00190 2.00190 2.00210 2.00200 2.00160 2.00140 2.00130 2.00130 2.00150 2.00150 2.00160 2.00150 2.00140
2.00130 2.00140 2.00150 2.00140 2.00150 2.00160 2.00150 2.00160 2.00190 2.00200 2.00200 2.00210 2.00220
2.00230 2.00240 2.00250 2.00270 2.00260 2.00260 2.00260 2.00270 2.00260 2.00250 2.00240
"""

MICHELSO = """
299.85 299.74 299.90 300.07 299.93 299.85 299.95 299.98 299.98 299.88 300.00 299.98 299.93 299.65 299.76
299.81 300.00 300.00 299.96 299.96 299.96 299.94 299.96 299.94 299.88 299.80 299.85 299.88 299.90 299.84
299.83 299.79 299.81 299.88 299.88 299.83 299.80 299.79 299.76 299.80 299.88 299.88 299.88 299.86 299.72
299.72 299.62 299.86 299.97 299.95 299.88 299.91 299.85 299.87 299.84 299.84 299.85 299.84 299.84 299.84
299.89 299.81 299.81 299.82 299.80 299.77 299.76 299.74 299.75 299.76 299.91 299.92 299.89 299.86 299.88
299.72 299.84 299.85 299.85 299.78 299.89 299.84 299.78 299.81 299.76 299.81 299.79 299.81 299.82 299.85
299.87 299.87 299.81 299.74 299.81 299.94 299.95 299.80 299.81 299.87
"""


class Dataset(NamedTuple):
    """One set: its values as decimal texts, and what NIST certifies to 15 digits (std with n - 1)."""

    name: str
    values: list[str]
    mean: str
    std: str


def pi_digits(count: int) -> list[str]:
    """The first digits of pi, 3 among them, by Machin's formula in integers."""
    one: int = 10 ** (count + 10)

    def arctan_of_inverse(x: int) -> int:
        total = term = one // x
        divisor = 1
        while term:
            term //= -x * x
            divisor += 2
            total += term // divisor
        return total

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    return list(str(Decimal(pi))[:count])  # str of an int stops at 4,300 digits


def numacc(first: str, pair: tuple[str, str], times: int) -> list[str]:
    """One value, then a pair over and over."""
    return [first, *pair * times]


def datasets() -> Iterator[Dataset]:
    """All nine sets, those of lower difficulty first."""
    yield Dataset("PiDigits", pi_digits(5000), "4.53580000000000", "2.8676755521876114")
    yield Dataset("Lottery", LOTTERY.split(), "518.958715596330", "291.699727470969")
    yield Dataset("Lew", LEW.split(), "-177.435000000000", "277.332168044316")
    yield Dataset("Mavro", MAVRO.split(), "2.00185600000000", "0.000429123454003053")
    yield Dataset("Michelso", MICHELSO.split(), "299.852400000000", "0.0790105478190518")
    yield Dataset("NumAcc1", numacc("10000001", ("10000003", "10000002"), 1), "10000002", "1")
    yield Dataset("NumAcc2", numacc("1.2", ("1.1", "1.3"), 500), "1.2", "0.1")
    yield Dataset("NumAcc3", numacc("1000000.2", ("1000000.1", "1000000.3"), 500), "1000000.2", "0.1")
    yield Dataset("NumAcc4", numacc("10000000.2", ("10000000.1", "10000000.3"), 500), "10000000.2", "0.1")


def check(dataset: Dataset) -> None:
    """Raises AssertionError where the decimal values do not give the certified ones to 15 digits."""
    values = [Fraction(text) for text in dataset.values]
    mean = sum(values, Fraction(0)) / len(values)
    variance = sum(((value - mean) ** 2 for value in values), Fraction(0)) / (len(values) - 1)
    wanted_mean, wanted_std = Fraction(dataset.mean), Fraction(dataset.std)
    for error, size in ((mean - wanted_mean, wanted_mean), (variance - wanted_std**2, 2 * wanted_std**2)):
        if abs(error / size) > Fraction(1, 10**14):
            raise AssertionError(f"{dataset.name}: {float(error)} away from what NIST certifies")
