"""From matrices and kernels to proved norms."""
