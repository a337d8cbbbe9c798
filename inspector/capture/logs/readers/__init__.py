"""One file for each log format; each registers its reader in `inspector.capture.logs.reader.LOGS`."""
