import HearthEvents
import HearthFirestoreServer
import HearthModel

/// Entry points for fuzzing what readers of the change feed name. A violated invariant traps.
package enum ChangeFuzzing {
    /// The query of a URL, a line feed, the field `last-event-id`.
    package static func fuzz(_ bytes: [UInt8]) {
        let lineEnd = bytes.firstIndex(of: UInt8(ascii: "\n")) ?? bytes.endIndex
        guard let query = String(validating: bytes[..<lineEnd], as: UTF8.self),
            let last = String(validating: bytes[min(lineEnd + 1, bytes.endIndex)...], as: UTF8.self)
        else { return }
        fuzzToken(query)
        fuzzToken(last)
        do throws(Status) {
            let parameters = try ChangeParameters(query: query, lastEventID: last, accept: nil)
            if let limit = parameters.linesMax { precondition(limit > 0, "a limit of no lines is taken") }
            if case .milliseconds(let wait) = parameters.wait {
                precondition((0...604_800_999).contains(wait), "a wait of \(wait) ms is taken")
            }
            if case .after(let token) = parameters.start { check(token) }
            if let pattern = parameters.pattern { fuzz(pattern) }
        } catch {
            precondition(error.code == .invalidArgument, "\(error)")
        }
    }

    private static func fuzz(_ pattern: EventPattern) {
        // A document with these segments at the beginning may match, and no other does.
        let prefix = pattern.literalPrefix
        var segments = prefix
        while segments.count % 2 != 0 || segments.isEmpty { segments.append("x") }
        _ = pattern.matches(EventPath(segments.joined(separator: "/")))
        guard let first = prefix.first else { return }
        let other = EventPath((["\(first)x"] + segments.dropFirst()).joined(separator: "/"))
        precondition(!pattern.matches(other), "a pattern matches without its first segment")
    }

    private static func fuzzToken(_ string: String) {
        do throws(Status) {
            let token = try ChangeToken(string)
            precondition(token.string == string, "a token isn't what it was read from")
            check(token)
        } catch {
            precondition(error.code == .invalidArgument, "\(error)")
        }
    }

    private static func check(_ token: ChangeToken) {
        do throws(Status) {
            let again = try ChangeToken(token.string)
            precondition(again == token, "a token is read as another one")
        } catch {
            preconditionFailure("a token can't be read again: \(error)")
        }
    }
}
