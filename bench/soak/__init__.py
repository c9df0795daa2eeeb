"""Load and soak: many sessions under full load, and a root in which something breaks every few seconds."""
