"""Spinning Up's module names: in an import, replacing `spinup` by `spinstat` is enough. No logic."""
