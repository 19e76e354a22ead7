"""How the C library keeps freed memory.

By default it hands large blocks back to the system, and every training step pays for the same pages anew: a
tenth of a 4C3F step on a CPU.
"""

from __future__ import annotations

import ctypes

# Parameters of glibc's mallopt, and sizes no block of a training reaches.
_TRIM_THRESHOLD, _NEVER_TRIM = -1, 2**31 - 1
_MMAP_THRESHOLD, _NEVER_MMAP = -3, 2**30


def keep_freed_memory() -> bool:
    """For the whole process and from now on; False where the C library is not glibc."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, Windows
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _NEVER_MMAP)) and bool(mallopt(_TRIM_THRESHOLD, _NEVER_TRIM))
