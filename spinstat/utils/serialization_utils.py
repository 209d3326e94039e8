"""The names of `spinup.utils.serialization_utils`, from spinstat.config."""

from ..config import convert_json, is_json_serializable

__all__ = ["convert_json", "is_json_serializable"]
