"""Code that several commands share, and the process that runs a trial of a sweep."""
