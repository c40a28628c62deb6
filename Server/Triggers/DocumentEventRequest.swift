import HearthDocuments
import HearthEvents
import HearthModel

/// The request for an event of Cloud Firestore.
enum DocumentEventRequest {
    /// An event beyond this is a dead letter.
    private static let sizeBytesMax = 16 << 20

    /// - Parameters:
    ///   - author: as it is stored.
    ///   - location: the region that events name.
    /// - Throws: DATA_LOSS for an event that can't be, RESOURCE_EXHAUSTED for one that is too large.
    static func make(
        _ event: Delivery.Event, _ states: QueuedEvent.States, author: [UInt8], of database: Database,
        for definition: TriggerDefinition, location: String
    ) throws(Status) -> EventRequest {
        guard let path = DocumentKey.decode(event.key) else {
            throw Status(.dataLoss, "A record of a trigger's queue has no document.")
        }
        let name = ResourceName(database: database.name, path: path)
        let id = id(event, name.string, database, definition.name)
        return try make(
            name, Timestamp(microseconds: event.version), states, author: author, id: id, for: definition,
            location: location)
    }

    /// - Parameters:
    ///   - time: that of the commit.
    ///   - author: as it is stored.
    /// - Throws: as above.
    static func make(
        _ document: ResourceName, _ time: Timestamp, _ states: QueuedEvent.States, author: [UInt8], id: EventID,
        for definition: TriggerDefinition, location: String
    ) throws(Status) -> EventRequest {
        let name = document.string
        let change = DocumentEvent(
            database: document.database, path: document.path.string, commitTime: time,
            before: states.before?.encoded(name: name), after: states.after?.encoded(name: name),
            author: EventAuthor(stored: author))
        guard let change else { throw Status(.dataLoss, "A trigger waits for a commit that changed nothing.") }
        let request = try EventRequest(
            change, id: id, type: definition.type, location: location, form: definition.form)
        if request.body.count > sizeBytesMax {
            throw .resourceExhausted("The event has \(request.body.count) bytes, of at most \(sizeBytesMax).")
        }
        return request
    }

    /// - Parameter name: the document's full one.
    static func id(_ event: Delivery.Event, _ name: String, _ database: Database, _ trigger: String) -> EventID {
        EventID(
            version: event.version, incarnation: database.incarnation, subject: Array(name.utf8), trigger: trigger)
    }

    /// The same when only the key is known; nil for a key that is no document's.
    static func id(_ event: Delivery.Event, _ database: Database, _ trigger: String) -> EventID? {
        guard let path = DocumentKey.decode(event.key) else { return nil }
        return id(event, ResourceName(database: database.name, path: path).string, database, trigger)
    }
}
