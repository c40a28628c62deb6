import HearthModel
import HearthDocuments

/// Results of rules about the state at one version. Among targets of one identity that show the same, only one is
/// judged.
///
/// Belongs to a loop's listeners. A judgement is valid until the next version is sent, or the rules change.
struct Judgements {
    struct Key: Hashable {
        /// See `ListenStream.judgedIdentity`.
        var identity: [UInt8]
        var subject: ListenSubscription.Subject
    }

    typealias Judgement = Result<[[UInt8]], Status>

    private static let countMax = 4096

    private var known: [Key: Judgement] = [:]

    subscript(key: Key) -> Judgement? { known[key] }

    mutating func note(_ judgement: Judgement, _ key: Key) {
        if known.count >= Self.countMax { known = [:] }
        known[key] = judgement
    }

    mutating func forget() {
        if !known.isEmpty { known = [:] }
    }
}
