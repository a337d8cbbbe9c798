"""fused."""
