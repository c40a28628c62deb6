"""Random traffic with a model that knows each answer: `python -m traffic --seconds 60`. See README.md."""
