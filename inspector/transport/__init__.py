"""The connection to a worker process: a child started by module name, with a pipe of its own for records.

In: requests (records). Out: answers (records), what the child printed (as log lines), and how it ended.

    process      both ends of the pipe, and the three steps in which a child is ended: ask, terminate, kill
    supervisor   the process above a worker on Linux: ends what a model leaves behind; watches its memory
    interpreter  the Python in which the child runs, and what is wrong with it where it does not start
    run_client   one blocking run, for the command line
"""
