"""Export models as ordinary layers (`plain`), and as ONNX files with the radius as an output."""

from lipcert.export.collapse import plain
from lipcert.export.onnx_file import export_onnx

__all__ = ["export_onnx", "plain"]
