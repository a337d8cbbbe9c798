"""The registry of quantities: one file each, registered with `QUANTITIES.register(key)` on a `Quantity`."""
