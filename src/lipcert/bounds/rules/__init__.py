"""The rules of torch's own modules, one family per file; every file of this folder is imported."""

from lipcert.registry import import_files

import_files(__name__)
