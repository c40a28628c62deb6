import HearthDocuments
import HearthFirestoreServer
import HearthModel
import HearthNetwork
import HearthWire

/// Tracks its targets as an SDK does. `@unchecked Sendable`: belongs to the loop.
final class ListenFuzzClient: StreamFuzzClient, @unchecked Sendable {
    private struct Target {
        var documents: Set<String> = []
        var isCurrent = false
    }

    private weak var stream: ListenStream?
    private var targets: [Int32: Target] = [:]
    private var readTime = Timestamp(microseconds: 0)
    /// Targets that resumed from a token, without this client's earlier data.
    private var resumed: Set<Int32> = []

    override init(loop: EventLoop, _ service: FirestoreService, _ database: Database) {
        super.init(loop: loop, service, database)
        onLoop { [self] in
            let stream = ListenStream(self, service)
            self.stream = stream
        }
    }

    override var isIdle: Bool { stream?.isIdle ?? true }

    override func received(_ bytes: [UInt8]) {
        let message: ListenResponse
        do throws(Status) {
            message = try ListenResponse(json: bytes, at: "")
        } catch { preconditionFailure("a message can't be read: \(error)") }
        if let change = message.targetChange { return take(change) }
        if let change = message.documentChange, let document = change.document {
            for id in change.targetIds {
                precondition(targets[id] != nil, "a document of a target that isn't there")
                targets[id]?.documents.insert(document.name)
            }
            for id in change.removedTargetIds { remove(document.name, id) }
        }
        if let change = message.documentDelete { for id in change.removedTargetIds { remove(change.document, id) } }
        if let change = message.documentRemove { for id in change.removedTargetIds { remove(change.document, id) } }
        if let filter = message.filter {
            let count = targets[filter.targetId]?.documents.count
            precondition(count != nil, "a filter of a target that isn't there")
        }
    }

    private func remove(_ name: String, _ id: Int32) {
        precondition(targets[id] != nil, "a document leaves a target that isn't there")
        targets[id]?.documents.remove(name)
    }

    private func take(_ change: TargetChangeMessage) {
        if !change.resumeToken.isEmpty { token = Self.base64(change.resumeToken) }
        switch change.targetChangeType {
        case .add:
            for id in change.targetIds {
                precondition(targets[id] == nil, "a target is added twice")
                targets[id] = Target()
            }
        // A target that was requested twice stays.
        case .remove where change.cause?.code == Int32(Status.Code.alreadyExists.rawValue): break
        case .remove: for id in change.targetIds { targets[id] = nil }
        case .reset:
            for id in change.targetIds {
                precondition(targets[id] != nil, "a target that isn't there is reset")
                targets[id] = Target()
            }
        case .current:
            for id in change.targetIds {
                precondition(targets[id] != nil, "a target that isn't there is current")
                targets[id]?.isCurrent = true
            }
        default:
            precondition(change.targetIds.isEmpty, "a boundary names no targets")
            precondition(targets.values.allSatisfy(\.isCurrent), "a boundary speaks for a target that isn't current")
            guard let time = try? change.readTime?.timestamp() else { preconditionFailure("a boundary without a time") }
            precondition(time >= readTime, "time goes back")
            readTime = time
        }
    }

    /// The client's final data equals the results of its queries, if the client began without data.
    func check(at database: Database) {
        onLoop { [self] in
            if isFinished { return }
            precondition(targets.values.allSatisfy(\.isCurrent), "a target isn't current in the end")
            do throws(Status) {
                let view = try database.view()
                for (id, count) in try stream?.resultCounts(view) ?? [:] {
                    guard let target = targets[id] else { preconditionFailure("a target isn't there") }
                    if resumed.contains(id) { continue }
                    precondition(target.documents.count == count, "target \(id) has other documents than its query")
                }
            } catch { preconditionFailure("the results can't be found: \(error)") }
        }
    }

    override func willSend(_ message: [UInt8]) {
        guard let request = try? ListenRequest(json: message, at: ""), let target = request.addTarget else { return }
        if target.resumeToken != nil || target.readTime != nil { resumed.insert(target.targetId) }
    }
}
