import HearthModel

/// What a trigger is called for, and the form of its events: the types of Google's events.
package struct EventType: Sendable, Hashable {
    package enum Product: Sendable { case firestore, database }

    /// What a change must be.
    package enum Wanted: String, Sendable, CaseIterable { case created, updated, deleted, written }

    package enum Form: Sendable {
        case cloudEvent
        /// With the attributes of who made the change; of Cloud Firestore only, since the Realtime Database's events always
        /// have them.
        case cloudEventWithAuthor
        /// Of functions of the first generation.
        case legacy
    }

    package let product: Product
    package let wanted: Wanted
    package let form: Form

    package init(_ product: Product, _ wanted: Wanted, _ form: Form) {
        self.product = product
        self.wanted = wanted
        self.form = form
    }

    private static let documents = "google.cloud.firestore.document.v1."
    private static let locations = "google.firebase.database.ref.v1."
    private static let legacyDocuments = "providers/cloud.firestore/eventTypes/document."
    private static let legacyLocations = "providers/google.firebase.database/eventTypes/ref."
    private static let withAuthor = ".withAuthContext"
    private static let legacyNames: [Wanted: String] = [
        .created: "create", .updated: "update", .deleted: "delete", .written: "write",
    ]

    /// All that there are, by name.
    private static let all: [String: EventType] = {
        var all: [String: EventType] = [:]
        for wanted in Wanted.allCases {
            for type in [
                EventType(.firestore, wanted, .cloudEvent), EventType(.firestore, wanted, .cloudEventWithAuthor),
                EventType(.firestore, wanted, .legacy), EventType(.database, wanted, .cloudEvent),
                EventType(.database, wanted, .legacy),
            ] {
                all[type.name] = type
            }
        }
        return all
    }()

    /// The names of all that there are.
    package static var names: [String] { all.keys.sorted(by: { UTF8Order.compare($0, $1) < 0 }) }

    /// - Throws: INVALID_ARGUMENT for a name that is none.
    package init(_ name: String) throws(Status) {
        guard let type = Self.all[name] else { throw .invalidArgument("There is no event type \"\(name)\".") }
        self = type
    }

    package var name: String {
        switch (product, form) {
        case (.firestore, .cloudEvent): Self.documents + wanted.rawValue
        case (.firestore, .cloudEventWithAuthor): Self.documents + wanted.rawValue + Self.withAuthor
        case (.firestore, .legacy): Self.legacyDocuments + Self.legacyNames[wanted, default: ""]
        case (.database, .legacy): Self.legacyLocations + Self.legacyNames[wanted, default: ""]
        case (.database, _): Self.locations + wanted.rawValue
        }
    }

    package func wants(_ kind: ChangeKind) -> Bool {
        switch (wanted, kind) {
        case (.written, _), (.created, .created), (.updated, .updated), (.deleted, .deleted): true
        default: false
        }
    }
}

/// What became of a document or a location.
package enum ChangeKind: Sendable, Equatable { case created, updated, deleted }
