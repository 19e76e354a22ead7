"""Train several models of one architecture at once."""
