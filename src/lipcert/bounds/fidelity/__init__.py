"""Check that the model that runs is the one that was proved."""
