"""Sends the same seeded random requests to Hearth and to Google's emulator and compares the answers."""
