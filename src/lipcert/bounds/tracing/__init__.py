"""From a module to the list of steps it computes."""
