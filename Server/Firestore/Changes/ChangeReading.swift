import HearthDocuments
import HearthEngine
import HearthEvents
import HearthModel
import HearthWire

/// What a step of a reading has found.
package struct ChangeStep: Sendable {
    package var bytes: [UInt8] = []
    package var lines = 0
    /// Everything has been read that there was.
    package var isAtEnd = false
    /// The reader gets no more: it has as many lines as it wanted, or all to the present.
    package var isOver = false
    /// The position, when it's not within a commit or a snapshot.
    package var token: ChangeToken?
    /// That of the last line.
    package var lastToken: ChangeToken?
    package var failure: Status?
}

/// A reading of the change feed, step by step, each with a snapshot of its own that is closed at its end.
///
/// `@unchecked Sendable`: belongs to the job that runs its step; there is one at a time.
package final class ChangeReading: @unchecked Sendable {
    private let database: Database
    private let parameters: ChangeParameters
    let wanted: ChangeFeed.Wanted
    private var hasBegun = false
    private var past: PastDocuments?
    /// The document before the end of the last step: only its successor shows whether it's the last.
    private var held: (key: [UInt8], document: StoredDocument)?
    private var feed: ChangeFeed?
    /// The newest version when the reading of the feed began.
    private var target: Int64 = 0
    private var linesTotal = 0
    private var writer = JSONWriter()
    private var step = ChangeStep()
    /// Whether the next step needs a thread that has time.
    package private(set) var needsTime = false

    private let stepBytes: Int

    /// Bytes of lines after which a step ends, if nothing else is said.
    package static let stepBytes = 128 << 10

    /// - Parameter stepBytes: bytes of lines after which a step ends; smaller in tests.
    package init(
        _ parameters: ChangeParameters, of database: Database, stepBytes: Int = ChangeReading.stepBytes
    ) {
        self.stepBytes = stepBytes
        self.parameters = parameters
        self.database = database
        if let pattern = parameters.pattern, !pattern.matchesEverything {
            wanted = ChangeFeed.Wanted(below: pattern.literalPrefix) { pattern.matches(EventPath($0.string)) }
        } else {
            wanted = .everything
        }
    }

    /// Reads on. Not on an event loop.
    /// - Parameter check: called now and then when the step may take its time.
    package func readOn(_ check: @escaping () throws(Status) -> Void = { () throws(Status) in }) -> ChangeStep {
        step = ChangeStep()
        writer = JSONWriter()
        writer.bytes.reserveCapacity(stepBytes + (16 << 10))
        let budget = needsTime ? FeedBudget.long(check) : .brief()
        do throws(Status) {
            let snapshot = try database.store.snapshot(needsTime ? .long : .short)
            defer { snapshot.close() }
            needsTime = false
            let isFirst = !hasBegun
            if isFirst { try begin(in: snapshot) }
            // Also when the step becomes too heavy below: what it has read until then is sent.
            hasBegun = true
            if past != nil {
                if !isFirst { try readDocuments(in: snapshot, budget) }
                needsTime = past != nil
            } else {
                try readFeed(in: snapshot, budget)
            }
        } catch {
            if error == WorkMeter.isHeavier { needsTime = true } else { step.failure = error }
        }
        step.bytes = writer.bytes
        writer = JSONWriter()
        if let feed, !feed.isWithinCommit {
            step.token = ChangeToken(incarnation: feed.incarnation, version: feed.version)
        }
        return step
    }

    private func begin(in snapshot: any Snapshot) throws(Status) {
        switch parameters.start {
        case .now: feed = try ChangeFeed(in: snapshot)
        case .snapshot: past = try PastDocuments(wanted, in: snapshot)
        case .after(let token) where token.isWithinSnapshot: past = try PastDocuments(wanted, in: snapshot)
        case .after(let token):
            feed = try ChangeFeed(
                after: token.version, incarnation: token.incarnation, in: snapshot, oldest: database.oldestChange)
        case .since(let time):
            if time.microseconds > database.latestMicroseconds {
                throw .invalidArgument("The parameter \"since\" is a time in the future.")
            }
            feed = try ChangeFeed(since: time, in: snapshot, oldest: database.oldestChange)
        }
        if feed != nil { target = try ChangeFeed(in: snapshot).version }
    }

    // MARK: Documents

    private func readDocuments(in snapshot: any Snapshot, _ budget: FeedBudget) throws(Status) {
        guard let version = past?.version, let incarnation = past?.incarnation else { return }
        let within = ChangeToken(incarnation: incarnation, version: version, isWithinSnapshot: true)
        let isDone = try past?.read(in: snapshot, budget) { key, document throws(Status) in
            if let held {
                self.held = (key, document)
                return try write(held.key, held.document, within, version)
            }
            held = (key, document)
            return true
        }
        guard isDone == true else { return }
        if let last = held {
            held = nil
            _ = try write(
                last.key, last.document, ChangeToken(incarnation: incarnation, version: version), version)
        }
        feed = past?.feed
        past = nil
        target = try ChangeFeed(in: snapshot).version
        if let linesMax = parameters.linesMax, linesTotal >= linesMax { step.isOver = true }
    }

    private func write(
        _ key: [UInt8], _ document: StoredDocument, _ token: ChangeToken, _ version: Int64
    ) throws(Status) -> Bool {
        try append(
            ChangeLine(
                .snapshot, token: token, time: Timestamp(microseconds: version), name: try name(key), before: nil,
                after: document.encoded(name: ""), isLast: !token.isWithinSnapshot))
        return writer.bytes.count < stepBytes
    }

    // MARK: Changes

    private func readFeed(in snapshot: any Snapshot, _ budget: FeedBudget) throws(Status) {
        let incarnation = try ChangeFeed.incarnation(of: snapshot)
        let isAtEnd = try feed?.read(in: snapshot, wanted, oldest: database.oldestChange, budget) {
            change throws(Status) in
            try append(
                ChangeLine(
                    change.before == nil ? .created : change.after == nil ? .deleted : .updated,
                    token: ChangeToken(incarnation: incarnation, version: change.position),
                    time: Timestamp(microseconds: change.version), name: try name(change.key),
                    before: change.before?.encoded(name: ""), after: change.after?.encoded(name: ""),
                    isLast: change.isLast))
            if change.isLast, let linesMax = parameters.linesMax, linesTotal >= linesMax {
                step.isOver = true
                return false
            }
            return writer.bytes.count < stepBytes
        }
        step.isAtEnd = isAtEnd == true
        guard let feed, parameters.wait == .milliseconds(0), !feed.isWithinCommit else { return }
        if feed.version >= target { step.isOver = true }
    }

    private func name(_ key: [UInt8]) throws(Status) -> String {
        guard let path = DocumentKey.decode(key) else {
            throw Status(.dataLoss, "A record of the change feed has no document.")
        }
        return ResourceName(database: database.name, path: path).string
    }

    private func append(_ line: ChangeLine) throws(Status) {
        switch parameters.form {
        case .lines:
            try line.append(to: &writer, hasBefore: parameters.hasBefore)
            writer.raw("\n")
        case .events:
            writer.raw("id: ")
            writer.raw(line.token.string)
            writer.raw("\nevent: ")
            writer.raw(line.kind.rawValue)
            writer.raw("\ndata: ")
            try line.append(to: &writer, hasBefore: parameters.hasBefore)
            writer.raw("\n\n")
        }
        step.lines += 1
        step.lastToken = line.token
        linesTotal += 1
    }
}
