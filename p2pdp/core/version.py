"""The version of the package, for rooms that may not import the package itself."""

from typing import Final

VERSION: Final = "0.1.0"
