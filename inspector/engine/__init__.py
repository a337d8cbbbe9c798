"""The engine: the only room with torch. It opens models, runs them with probes, and computes quantities."""
