"""Make tables and pictures from run directories."""
