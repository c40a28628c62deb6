import HearthModel
import Synchronization

/// How far an export, import or bulk deletion is, for whoever asks, and the request to end it. Usable from any thread.
package final class TransferControl: Sendable {
    package enum Phase: Sendable {
        /// An export or deletion counts documents; an import checks all files.
        case initializing
        /// Documents are written, or deleted.
        case processing
        /// That is done; an export is made durable and gets its name.
        case finalizing
    }

    package struct Progress: Sendable, Equatable {
        package var phase = Phase.initializing
        /// Documents that were exported, or are written or deleted durably.
        package var documentCount = 0
        /// About so many there are; 0 as long as that is not known.
        package var estimatedDocumentCount = 0
        /// Bytes of the export's files that were written, or read.
        package var sizeBytes = 0
        package var estimatedSizeBytes = 0
        /// The moment that is exported.
        package var readTime: Timestamp?

        /// Estimates the size of all documents by that of those so far.
        mutating func estimate(from documentCount: Int, sizeBytes: Int) {
            estimatedDocumentCount = max(estimatedDocumentCount, documentCount)
            let share = Double(estimatedDocumentCount) / Double(max(1, documentCount))
            estimatedSizeBytes = Int(Double(sizeBytes) * share)
        }
    }

    private struct State {
        var progress = Progress()
        var stop: Status?
    }

    private let state = Mutex(State())

    package init() {}

    package var progress: Progress { state.withLock { $0.progress } }

    func update(_ change: (inout Progress) -> Void) { state.withLock { change(&$0.progress) } }

    /// Ends the work, which fails with CANCELLED soon.
    package func cancel() { stop(because: Status(.cancelled, "The operation was cancelled.")) }

    package var isCancelled: Bool { state.withLock { $0.stop != nil } }

    /// Ends the work, which fails with the reason soon. Only the first call has an effect.
    func stop(because reason: Status) {
        state.withLock { state in
            if state.stop == nil { state.stop = reason }
        }
    }

    func check() throws(Status) {
        if let stop = state.withLock({ $0.stop }) { throw stop }
    }
}
