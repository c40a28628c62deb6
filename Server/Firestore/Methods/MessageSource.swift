import HearthModel
import HearthNetwork
import HearthEngine
import HearthDocuments

/// The source of the messages of a streamed response. Used by one thread at a time.
protocol MessageSource: AnyObject {
    /// Whether the next messages cost little, so that the event loop may create them itself.
    var isLight: Bool { get }
    /// Whether the next messages cost more than an event loop may do, which was found during an attempt on a loop. From
    /// then on the source is not light.
    var isPaused: Bool { get }
    /// Appends the next message; false at the end, or, on a loop, when the source has paused. Must not be called while
    /// the source is suspended.
    func next(onLoop: Bool, to messages: inout MessageBatch) throws(Status) -> Bool

    /// Measures the work of the next messages; nil when a part of the work does not show its cost.
    var meter: WorkMeter? { get }

    /// Whether the source has released its snapshot.
    var isSuspended: Bool { get }
    /// Holds the snapshot for a long read.
    func hold(_ read: LongRead)
    /// Releases the snapshot, if the source can do without; `resume` gets another one of the same state.
    func suspend()
    /// - Parameter read: nil for a short one. A source whose work failed with `WorkMeter.isHeavier` continues after its
    ///   last message.
    func resume(_ read: LongRead?) throws(Status)
}
