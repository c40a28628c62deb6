"""WebChannel's frames: `<length in UTF-16 units> LF <JSON>`."""

from __future__ import annotations

import codecs
import json
from typing import Any


class ProtocolFault(AssertionError):
    """The server violated the protocol."""


class Frames:
    """Splits a body into frames, independent of its pieces: `<length in UTF-16 units> LF <JSON>`."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        # As UTF-16, where a unit is two bytes.
        self._text = bytearray()
        #: The JSON of the frames so far.
        self.texts: list[str] = []

    def feed(self, piece: bytes) -> list[list[Any]]:
        self._text += self._decoder.decode(piece).encode("utf-16-le")
        frames = []
        while (end := self._find_line_end()) >= 0:
            digits = self._text[:end].decode("utf-16-le")
            if not (digits.isascii() and digits.isdigit()) or digits[0] == "0":
                raise ProtocolFault(f"a frame's length is {digits!r}")
            begin, length = end + 2, 2 * int(digits)
            if len(self._text) < begin + length:
                break
            text = self._text[begin : begin + length].decode("utf-16-le", "surrogatepass")
            del self._text[: begin + length]
            try:
                frame = json.loads(text)
            except ValueError as error:
                raise ProtocolFault(f"a frame of {digits} units isn't JSON: {text!r}") from error
            if not isinstance(frame, list):
                raise ProtocolFault(f"a frame isn't an array: {text!r}")
            self.texts.append(text)
            frames.append(frame)
        return frames

    def _find_line_end(self) -> int:
        """Where the length's line ends, or -1."""
        end = self._text.find(b"\n\0")
        if (end if end >= 0 else len(self._text)) > 20:
            raise ProtocolFault(f"no frame begins with {bytes(self._text[:60])!r}")
        return end

    def finish(self) -> None:
        """A body that ended correctly must not end inside a frame."""
        if self._text or self._decoder.getstate()[0]:
            raise ProtocolFault(f"a body ends inside a frame: {bytes(self._text[:200])!r}")


def frames(body: bytes) -> list[list[Any]]:
    """The frames of a whole body."""
    reader = Frames()
    found = reader.feed(body)
    reader.finish()
    return found
