import HearthModel

/// Decides which overlays are recomputed when the server has answered a write with the results of its transforms.
///
/// A recomputation reads all pending writes of the document: n writes of one document would take n² steps in total.
/// Therefore the more writes are pending, the fewer answers cause a recomputation. In between the document shows the
/// expected effect of the pending writes, as it did before the answer. With few pending writes every answer causes a
/// recomputation. After the last answer there is no overlay, and when no more answers arrive the overlay is recomputed
/// once.
struct OverlayDebts {
    /// The average number of writes that may be read per answer.
    static let batchesPerAnswer = 32

    /// Answers to skip before the next recomputation.
    private var answersLeft: [ResourcePath: Int] = [:]

    var isEmpty: Bool { answersLeft.isEmpty }

    /// Returns the documents whose overlays are out of date, and clears them.
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

    /// The overlay was recomputed from this number of writes.
    mutating func note(_ key: ResourcePath, batches: Int) {
        let answers = batches / Self.batchesPerAnswer
        answersLeft[key] = answers > 0 ? answers : nil
    }
}
