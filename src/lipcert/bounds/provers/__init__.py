"""Prove the norms of matrices and kernels."""
