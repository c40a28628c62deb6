import HearthModel
import HearthRules
import HearthTree

/// One message of a client, read from its string; `RealtimeServerMessage` has what is sent to it. Source: the messages of
/// the public SDKs' persistent connection.
package enum RealtimeClientMessage: Sendable {
    /// Must be answered immediately.
    case ping
    /// Needs no action: messages of long polling only, and those that clients of other versions may send.
    case ignored
    case request(RealtimeRequest)
}

/// A client's request.
package struct RealtimeRequest: Sendable {
    package enum Action: Sendable {
        ///   - tag: chosen by the client; every push contains it.
        ///   - known: the data that the client has.
        case listen(RealtimeTarget, tag: Int64?, known: KnownData)
        case unlisten(RealtimeTarget)
        case get(RealtimeTarget)
        ///   - hash: of the value that must exist for the write to be made; nil for any value.
        case put(TreeUpdate, hash: String?)
        case merge(TreeUpdate)
        case disconnectPut(TreeChange)
        case disconnectMerge([TreeChange])
        case disconnectCancel(TreePath)
        case authenticate(RealtimeCredential, override: RealtimeOverride?)
        case unauthenticate
        /// Answered with `ok` and nothing else: statistics and App Check.
        case noted
    }

    package var number: Int64
    package var action: Result<Action, RealtimeRefusal>
    /// Of the message.
    var sizeBytes: Int

    var isWrite: Bool {
        switch action {
        case .success(.put), .success(.merge): true
        default: false
        }
    }

    var isRead: Bool {
        switch action {
        case .success(.listen), .success(.get): true
        default: false
        }
    }
}

extension RealtimeClientMessage {
    /// The reason why a write fails whatever its data is; nil when it may be allowed.
    package typealias Foresight = (TreeWriteScope) -> RealtimeRefusal?

    /// - Parameter foresee: is called before the data of a write is decoded.
    /// - Throws: a fault when this cannot be a message of this protocol. An error inside a request is a
    ///   `RealtimeRefusal`.
    package init(_ string: [UInt8], foresee: Foresight = { _ in nil }) throws(RealtimeFault) {
        do throws(TreeDataError) {
            let envelope = Members(try TreeJSON.members(string))
            let data = try envelope.required("d")
            guard let kind = try TreeJSON.value(string, in: try envelope.required("t")).string else {
                throw Self.malformed
            }
            switch kind {
            case "c": self = try Self.control(string, data)
            case "d": self = .request(try RealtimeRequest(string, data, foresee))
            default: throw Self.malformed
            }
        } catch {
            throw RealtimeFault(kind: .malformed, reason: "Malformed message: \(error.message)")
        }
    }

    private static let malformed = TreeDataError("it is neither a control message nor a request")

    private static func control(_ string: [UInt8], _ range: Range<Int>) throws(TreeDataError) -> RealtimeClientMessage {
        let members = Members(try TreeJSON.members(string, in: range))
        return try TreeJSON.value(string, in: try members.required("t")).string == "p" ? .ping : .ignored
    }
}

/// The members of an object, each a part of the string.
private struct Members {
    private let members: [(name: String, value: Range<Int>)]

    init(_ members: [(name: String, value: Range<Int>)]) { self.members = members }

    subscript(name: String) -> Range<Int>? { members.last { TreeKey($0.name) == TreeKey(name) }?.value }

    func required(_ name: String) throws(TreeDataError) -> Range<Int> {
        guard let range = self[name] else { throw TreeDataError("\(name) is missing") }
        return range
    }
}

extension RealtimeRequest {
    fileprivate init(
        _ string: [UInt8], _ range: Range<Int>, _ foresee: RealtimeClientMessage.Foresight
    ) throws(TreeDataError) {
        let members = Members(try TreeJSON.members(string, in: range))
        guard let number = try TreeJSON.value(string, in: try members.required("r")).integer,
            let name = try TreeJSON.value(string, in: try members.required("a")).string
        else { throw TreeDataError("a request has a number and an action") }
        self.number = number
        sizeBytes = string.count
        do throws(RealtimeRefusal) {
            let body = try RequestBody(string, members["b"])
            if let refusal = body.refusal(of: name, foresee) { throw refusal }
            action = .success(try body.action(name))
        } catch {
            action = .failure(error)
        }
    }
}

/// Reads the body of a request.
private struct RequestBody {
    let string: [UInt8]
    var members = Members([])

    init(_ string: [UInt8], _ range: Range<Int>?) throws(RealtimeRefusal) {
        self.string = string
        guard let range else { return }
        do throws(TreeDataError) {
            members = Members(try TreeJSON.members(string, in: range))
        } catch {
            throw RealtimeRefusal(error)
        }
    }

    /// Nil for every action that isn't a write.
    func refusal(of name: String, _ foresee: RealtimeClientMessage.Foresight) -> RealtimeRefusal? {
        do throws(TreeDataError) {
            switch name {
            case "p", "o": return foresee(.location(try path(allowingPriority: true)))
            case "m", "om": return foresee(.below(try path()))
            default: return nil
            }
        } catch {
            // The error is found again when the request is read.
            return nil
        }
    }

    func action(_ name: String) throws(RealtimeRefusal) -> RealtimeRequest.Action {
        do throws(TreeDataError) {
            switch name {
            case "q", "l": return .listen(try target(), tag: try value("t")?.integer, known: try known())
            case "n", "u": return .unlisten(try target())
            case "g": return .get(try target())
            case "p": return .put(try replacement(), hash: try value("h")?.string)
            case "m": return .merge(try update())
            case "o": return .disconnectPut(try replacement().changes[0])
            case "om": return .disconnectMerge(try update().changes)
            case "oc": return .disconnectCancel(try path(allowingPriority: true))
            case "auth": return .authenticate(.token(try credential()), override: nil)
            case "gauth": return .authenticate(.accessToken(try credential()), override: try override())
            case "unauth": return .unauthenticate
            case "s", "appcheck", "unappeck", "unappcheck": return .noted
            default: break
            }
        } catch {
            throw RealtimeRefusal(error)
        }
        throw RealtimeRefusal(status: .error, string: "Unknown action: \(name.prefix(40))")
    }

    private func value(_ name: String) throws(TreeDataError) -> JSONValue? {
        guard let range = members[name] else { return nil }
        return try TreeJSON.value(string, in: range)
    }

    private func path(allowingPriority: Bool = false) throws(TreeDataError) -> TreePath {
        guard let string = try value("p")?.string else { throw .invalidPath }
        return try TreeLimits.standard.path(string, allowingPriority: allowingPriority)
    }

    private func known() throws(TreeDataError) -> KnownData {
        var known = KnownData(hash: try value("h")?.string)
        if let wire = try value("ch"), !wire.isNull { known.compound = try CompoundHash(wire: wire) }
        return known
    }

    private func target() throws(TreeDataError) -> RealtimeTarget {
        let path = try path()
        guard let wire = try value("q"), !wire.isNull else { return RealtimeTarget(path: path, query: nil) }
        let query = try TreeQuery(wire: wire)
        return RealtimeTarget(path: path, query: query.isUnfiltered ? nil : query)
    }

    private func replacement() throws(TreeDataError) -> TreeUpdate {
        let path = try path(allowingPriority: true)
        guard let range = members["d"] else { throw .invalidJSON }
        guard path.last == .priority, let location = path.parent else {
            return .set(path, try TreeJSON.node(string, in: range, limits: TreeLimits.standard.below(path)))
        }
        // For the checks of a priority's value.
        let priority = try TreeJSON.node(string, in: range)
        return .set(path, try TreeUpdate.merge(at: location, members: [(".priority", priority)]).changes[0].node)
    }

    private func update() throws(TreeDataError) -> TreeUpdate {
        let path = try path()
        guard let range = members["d"] else { throw .notAnObject }
        return try TreeJSON.merge(string, in: range, at: path)
    }

    private func credential() throws(TreeDataError) -> String {
        guard let string = try value("cred")?.string else { throw TreeDataError("Could not parse auth token.") }
        return string
    }

    /// The identity that an administrator wants rules to see: `noauth` nobody, `authvar` a user.
    private func override() throws(TreeDataError) -> RealtimeOverride? {
        if try value("noauth")?.bool == true { return .nobody }
        guard let variable = try value("authvar") else { return nil }
        do throws(Status) {
            return try RealtimeOverride(variable)
        } catch {
            throw TreeDataError(error.message)
        }
    }
}
