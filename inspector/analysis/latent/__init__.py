"""Models with hidden states, in double precision: what filter and smoother say of them, and whether to believe it.

kalman          linear Gaussian model: filter, innovations, gain, smoother
consistency     innovations against what they should be: χ² band, autocorrelation, Ljung–Box
hidden_markov   forward and backward pass, Viterbi path, how long a state lasts
"""
