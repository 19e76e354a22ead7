"""Base classes that several layers share."""
