"""Hidden variables: distributions, filters and hidden Markov models."""
