"""The views of the panel of hidden variables: variables with bands, innovations of a filter, discrete states."""
