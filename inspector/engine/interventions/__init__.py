"""interventions."""
