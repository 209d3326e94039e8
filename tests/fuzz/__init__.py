"""Fuzzers of the Python side: each target is a function of bytes that raises where spinstat is wrong.

    python -m fuzz store --seconds 600      from tests/, with atheris, which follows the coverage

tests/test_fuzz_corpus.py runs every target on what was found so far (tests/data/fuzz/), without atheris.
"""
