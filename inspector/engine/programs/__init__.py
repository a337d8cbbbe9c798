"""Models that come as a file of their own: graphs and programs made into modules that probes can hook.

In: what a library has read of a file (a graph of torch.export's, a scripted module, a graph of ONNX). Out: an
`nn.Module` that computes the same, written with torch's public functions and torch's recurrent layers, and a Subject.

    fused_layers       the operators lstm, gru, rnn_tanh and rnn_relu as nn.LSTM, nn.GRU and nn.RNN
    public_functions   an operator of aten as the function of torch's that computes it, where the two are found equal
    agreement          whether two programs compute the same numbers
    signature          what a program reads: kinds, fixed sizes, examples; and its Subject

Begin reading with `signature.py`. The files of `engine/loaders/` that open programs use these.
"""
