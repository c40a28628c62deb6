import HearthModel

/// The bounds of this module, and of those that build upon it. One marked "ours" guards memory or time and is not part of the
/// service's contract.
extension Limits {
    // MARK: Workers and memory; bounds of ours

    /// Bytes that whatever is held for peers may have together, beyond what each kind has of its own: all kinds at once
    /// keep the process below 400 MB.
    package static let pooledBytesMax = 96 << 20
    package static let answersOwnBytes = 16 << 20
    package static let openRequestsOwnBytes = 8 << 20
}
