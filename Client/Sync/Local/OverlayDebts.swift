import HearthModel

/// Which overlays are worked out anew when the server has answered a write with the results of its transforms.
///
/// That takes all writes of the document that still wait, so that n writes of one document would take n² steps in all. Here
/// the more writes wait, the fewer answers are followed by it: in between the document shows what the writes that still
/// wait were expected to make of it, as it did before the answer. With few of them it follows every answer, after the last there is
/// no overlay, and when no more answers come it is done once.
struct OverlayDebts {
    /// Writes that may be looked at for each answer, on average.
    static let batchesPerAnswer = 32

    /// Answers that pass before the next time.
    private var answersLeft: [ResourcePath: Int] = [:]

    var isEmpty: Bool { answersLeft.isEmpty }

    /// Documents whose overlays are behind; they are none any more.
    mutating func takeAll() -> Set<ResourcePath> {
        defer { answersLeft = [:] }
        return Set(answersLeft.keys)
    }

    /// The server answered a write of the document.
    mutating func isDue(_ key: ResourcePath) -> Bool {
        guard let left = answersLeft[key], left > 0 else { return true }
        answersLeft[key] = left - 1
        return false
    }

    /// It was worked out, from so many writes.
    mutating func note(_ key: ResourcePath, batches: Int) {
        let answers = batches / Self.batchesPerAnswer
        answersLeft[key] = answers > 0 ? answers : nil
    }
}
