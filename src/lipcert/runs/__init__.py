"""Run directories: what one training leaves behind."""
