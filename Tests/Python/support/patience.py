"""How long tests wait for what must happen. Only a hang takes so long, on a machine however busy: no test measures time
with it."""

PATIENCE = 600
