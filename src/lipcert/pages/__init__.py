"""Pages that people read in a browser."""
