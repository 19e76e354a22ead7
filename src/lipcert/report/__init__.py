"""Tables and pictures from run directories."""
