"""The memory: a capture is a folder of page files with an SQLite index; the only thing a panel reads."""
