import HearthEvents
import HearthModel

/// The events of one trigger in one database: the queue, and what an event is made of. Called on the dispatcher's thread.
package protocol EventSource: AnyObject, Sendable {
    /// To be called before anything is read or settled; `release` follows.
    func access() -> EventAccess

    /// Nothing is read for now: the database may be closed.
    func release()

    /// The next events of the queue, at most `countMax`, behind an event that need not be there.
    /// - Throws: UNAVAILABLE when the store can't be read now.
    func events(after event: Delivery.Event?, countMax: Int) throws(Status) -> [Delivery.Event]

    /// What is sent.
    /// - Returns: nil when the queue doesn't have the event any more.
    /// - Throws: UNAVAILABLE when the store can't be read now; anything else when the event can never be sent.
    func request(for event: Delivery.Event) throws(Status) -> EventRequest?

    /// Events of commits before this version have the age at which they are not repeated any more. Also without access.
    func expiredVersion() -> Int64

    /// Removes events from the queue, and keeps those that are dead letters: the first ones, at least one.
    /// - Parameter completion: called once when that is durable, or has failed, on any thread.
    /// - Returns: how many it takes.
    func settle(_ settled: [Delivery.Settled], completion: @escaping @Sendable (Result<Void, Status>) -> Void) -> Int
}

/// Whether the events of a database can be read.
package enum EventAccess: Sendable {
    case open
    /// It is being opened: the dispatcher is notified then.
    case opening
    /// It was deleted.
    case gone
}

/// Sends one event; see `EventSender`.
package protocol EventSending: Sendable {
    func send(
        _ event: EventRequest, to target: EventSender.Target, attempt: Int,
        _ done: @escaping @Sendable (Delivery.Answer) -> Void)
}

extension EventSender: EventSending {}
