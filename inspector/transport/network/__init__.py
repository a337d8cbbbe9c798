"""A watched training on another machine: its records over a TCP connection to a listener, which writes the capture.

    address    tcp://host:port/name, and the shared secret
    wire       messages with a length, a kind and a code of authentication; both sides prove that they know the secret
    content    records and pages as the bodies of messages, with every field checked
    sender     in the training: a writer whose records go to the listener; sends again what was missed
    listener   accepts connections, with bounds on everything that a peer can make it hold
    receiving  one training on the listener's side: its capture, and how far it has come

Begin reading with `wire.py`. Nothing is encrypted: docs/watching.md has the recipe with ssh.
"""
