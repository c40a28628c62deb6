import HearthDocuments
import HearthEvents
import HearthModel

/// What a record of a trigger's queue has beside its key: who made the commit, and, of an event whose history may be gone, the
/// states of the document.
///
///     format 1 byte · count of the author's bytes (4) · author
///     and with format 2: count of the state before (4) · state before · state after
///
/// Numbers are big-endian; a state that there is not has no bytes.
package struct QueuedEvent: Equatable {
    var author: [UInt8]
    var states: States?

    struct States: Equatable {
        var before: StoredDocument?
        var after: StoredDocument?

        /// Nil when there is neither.
        var kind: ChangeKind? {
            switch (before, after) {
            case (nil, nil): nil
            case (nil, _): .created
            case (_, nil): .deleted
            default: .updated
            }
        }
    }

    private static let plain: UInt8 = 1
    private static let withStates: UInt8 = 2

    init(author: [UInt8], states: States? = nil) {
        self.author = author
        self.states = states
    }

    var bytes: [UInt8] {
        var bytes = [states == nil ? Self.plain : Self.withStates]
        Self.append(author, to: &bytes)
        if let states {
            Self.append(states.before?.stored ?? [], to: &bytes)
            bytes += states.after?.stored ?? []
        }
        return bytes
    }

    private static func append(_ part: [UInt8], to bytes: inout [UInt8]) {
        withUnsafeBytes(of: UInt32(part.count).bigEndian) { bytes += $0 }
        bytes += part
    }

    /// - Throws: DATA_LOSS for bytes that are no record.
    package init(_ bytes: [UInt8]) throws(Status) {
        var position = 1
        guard let format = bytes.first, format == Self.plain || format == Self.withStates,
            let author = Self.part(bytes, &position)
        else { throw Self.damaged }
        self.author = Array(author)
        if format == Self.plain { return }
        guard let before = Self.part(bytes, &position) else { throw Self.damaged }
        let after = bytes[position...]
        states = States(
            before: before.isEmpty ? nil : try StoredDocument(stored: before),
            after: after.isEmpty ? nil : try StoredDocument(stored: after))
    }

    private static func part(_ bytes: [UInt8], _ position: inout Int) -> ArraySlice<UInt8>? {
        guard position + 4 <= bytes.count else { return nil }
        let count = bytes[position..<position + 4].reduce(0) { $0 << 8 | Int($1) }
        position += 4
        guard position + count <= bytes.count else { return nil }
        defer { position += count }
        return bytes[position..<position + count]
    }

    private static let damaged = Status(.dataLoss, "A record of a trigger's queue is damaged.")
}
