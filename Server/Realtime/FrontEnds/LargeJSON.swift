import HearthHost

/// JSON in a file. Each next piece is read when the client has received the one before. Any number of clients may read
/// it.
package final class LargeJSON: Sendable {
    package let file: SpillFile
    /// The number of frames in which a socket sends it.
    let frameCount: Int
    /// Whether it may contain the name `__proto__`, which has another meaning in a script.
    let namesPrototype: Bool

    init(_ file: SpillFile, frameCount: Int, namesPrototype: Bool) {
        self.file = file
        self.frameCount = frameCount
        self.namesPrototype = namesPrototype
    }
}
