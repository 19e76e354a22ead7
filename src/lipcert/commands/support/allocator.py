"""Let the C library keep freed memory, in the processes of the command line.

By default it returns blocks to the system, and every training step pays for the same pages again: a tenth
of a 4C3F step on a CPU. Blocks of 32 MiB and more still go back: kept, they leave gaps that make an 8C2F take
half as much memory again.
"""

from __future__ import annotations

import ctypes

# Parameters of glibc's mallopt, and their values.
_TRIM_THRESHOLD, _NEVER_TRIM = -1, 2**31 - 1
_MMAP_THRESHOLD, _LARGE = -3, 2**25


def keep_freed_memory() -> bool:
    """Keep freed memory in the whole process from now on; return False where the C library is not glibc."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, Windows
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGE)) and bool(mallopt(_TRIM_THRESHOLD, _NEVER_TRIM))
