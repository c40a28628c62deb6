import HearthToolSupport
import Glibc
import HearthModel
import HearthRules

/// The time that rules take to evaluate a write, within this process.
struct RulesSpeed {
    enum Rule: Sendable {
        /// Compares the caller with a field of the stored document.
        case owner
        /// Twenty conditions on the written document.
        case validator
    }

    private static let path = ResourcePath(["notes", "n1"])
    private static let time = Timestamp(microseconds: 1_709_209_845_123_456)
    private static let auth = RulesAuth(
        uid: "alice", token: MapValue([.init(name: "email", value: .string("a@example.org"))]))

    private static let stored = MapValue([
        .init(name: "owner", value: .string("alice")), .init(name: "title", value: .string("hello")),
        .init(name: "n", value: .integer(4)),
    ])

    private static let written = MapValue([
        .init(name: "owner", value: .string("alice")), .init(name: "title", value: .string("hello world")),
        .init(name: "n", value: .integer(5)), .init(name: "tags", value: .array([.string("x"), .string("a")])),
        .init(name: "createdAt", value: .timestamp(time)),
        .init(name: "body", value: .string("the quick brown fox jumps over the lazy dog")),
    ])

    private static func string(_ rule: Rule) -> String {
        let body =
            switch rule {
            case .owner: "allow write: if request.auth != null && request.auth.uid == resource.data.owner;"
            case .validator:
                """
                function signedIn() { return request.auth != null; }
                function valid(data) { return
                  data.keys().hasAll(['owner', 'title', 'n'])
                  && data.keys().hasOnly(['owner', 'title', 'n', 'tags', 'createdAt', 'body'])
                  && data.owner is string && data.owner == request.auth.uid
                  && data.title is string && data.title.size() > 0 && data.title.size() <= 100
                  && data.n is int && data.n >= 0 && data.n < 1000
                  && data.tags is list && data.tags.size() <= 10 && 'a' in data.tags
                  && data.createdAt is timestamp && data.createdAt <= request.time
                  && data.body is string && data.body.size() < 10000 && data.body.matches('[a-z ]+')
                  && data.diff(resource.data).affectedKeys().hasOnly(['title', 'body', 'tags', 'createdAt', 'n']); }
                allow update: if signedIn() && valid(request.resource.data);
                """
            }
        return """
            rules_version = '2';
            service cloud.firestore { match /databases/{database}/documents { match /notes/{note} { \(body) } } }
            """
    }

    /// No other document is stored.
    private final class NoDocuments: DocumentReader {
        func document(_ path: ResourcePath, isAfter: Bool) throws(Status) -> RulesDocument? { nil }
    }

    static func measure(_ name: String, _ rule: Rule, seconds: Double) throws(ToolFailure) -> [Figure] {
        guard let ruleset = Ruleset.compile(string(rule)).ruleset else {
            throw ToolFailure(.unavailable, "The rules of \(name) can't be read.")
        }
        let reader = NoDocuments()
        let stored = RulesDocument(path: path, fields: Self.stored)
        let written = RulesDocument(path: path, fields: Self.written)
        var fastest = Double.infinity
        let end = processorSeconds() + seconds
        // The fastest of several short intervals: the others were disturbed.
        repeat {
            let count = 5000
            let start = processorSeconds()
            for _ in 0..<count {
                let request = RulesRequest(
                    method: .update, path: path, auth: auth, time: time, resource: stored, newResource: written)
                guard ruleset.decide(request, reader, RulesAccess(total: 10)).isAllowed else {
                    throw ToolFailure(.unavailable, "The rules of \(name) deny a write that they must allow.")
                }
            }
            fastest = min(fastest, (processorSeconds() - start) / Double(count))
        } while processorSeconds() < end
        return [
            Figure(workload: name, metric: "decision", unit: "µs", value: fastest * 1e6, direction: .lowerIsBetter)
        ]
    }

    /// Of this thread.
    private static func processorSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
