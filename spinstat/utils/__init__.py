"""Spinning Up's module names: replacing `spinup` by `spinstat` in an import is enough. No logic of their own."""
