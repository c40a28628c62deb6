import HearthModel

/// Settled events on their way out of a queue, and what is kept of those that were given up.
struct EventSettlement: Sendable {
    private(set) var events: [Delivery.Event] = []
    private(set) var letters: [Delivery.Event: (DeadLetters.Entry, DeadLetter)] = [:]

    /// Of the dead letters that one transaction stores, about.
    private static let bytesMax = 1 << 20
    /// Events of one transaction.
    private static let countMax = 10_000
    /// Dead letters of one transaction, each of which may have another one deleted, however large.
    private static let lettersMax = 200

    /// The first ones of some events, at least one.
    /// - Parameters:
    ///   - time: when they were given up, in microseconds since 1970.
    ///   - record: what is kept of an event; nil when the queue doesn't have it any more.
    init(
        _ settled: [Delivery.Settled], of definition: TriggerDefinition, at time: Int64,
        record: (Delivery.Event) throws(Status) -> [UInt8]?
    ) throws(Status) {
        var sizeBytes = 0
        for one in settled {
            if sizeBytes >= Self.bytesMax || events.count >= Self.countMax || letters.count >= Self.lettersMax {
                return
            }
            events.append(one.event)
            guard case .dead(let attempts, let failure) = one.result, definition.keepsDeadLetters,
                let record = try record(one.event)
            else { continue }
            let letter = DeadLetter(attempts: attempts, failure: failure, record: record)
            letters[one.event] = (DeadLetters.Entry(time: time, event: one.event), letter)
            sizeBytes += record.count
        }
    }
}
