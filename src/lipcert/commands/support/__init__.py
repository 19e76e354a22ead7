"""What several commands share, and the process that carries out a trial of a sweep."""
