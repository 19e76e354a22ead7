"""Several trainings of one architecture as one."""
