import Foundation
import HearthDatabase

/// Observes a query with every kind of event, maintains a list by its child events alone, and records a fault when an
/// event does not match the list, or the list does not match the next value event.
///
/// For one change, additions are reported before moves, and each event names the previous sibling of the final order,
/// as in the public SDKs. When a child is positioned after one that moves at the same time, the list alone has a wrong
/// order. In that case each event is checked against the final order.
///
/// A second list is made from the events of `childEvents()`, which need no such exception.
final class EventWitness: @unchecked Sendable {
    private struct Child: Equatable {
        var key: String
        var string: String
    }

    // `lock` guards the following properties; events arrive on the database's queue, one after the other.
    private let lock = NSLock()
    private var children: [Child] = []
    private var found: [String] = []
    private var count = 0
    private var latest: String?
    /// The reported previous siblings since the last value event.
    private var reportedSiblings: [String: String?] = [:]
    private var moves = 0
    private var isStopped = false
    private var listed: [Child] = []
    private var sequence: Task<Void, Never>?

    private let query: DatabaseQuery
    private var handles: [DatabaseHandle] = []

    init(_ query: DatabaseQuery) {
        self.query = query
        let kinds: [(DataEventType, String)] = [
            (.childAdded, "added"), (.childRemoved, "removed"), (.childMoved, "moved"), (.childChanged, "changed"),
        ]
        for (type, name) in kinds {
            handles.append(
                query.observe(
                    type,
                    andPreviousSiblingKeyWith: { [weak self] snapshot, previous in
                        self?.take(name, snapshot, after: previous)
                    }))
        }
        handles.append(query.observe(.value, with: { [weak self] snapshot in self?.take(snapshot) }))
        sequence = Task { [weak self, query] in
            do {
                for try await event in query.childEvents() { self?.take(event) }
            } catch { self?.note("the sequence ended: \(error)") }
        }
    }

    /// Observers are removed one after the other: events that arrive meanwhile reach only some of them.
    func stop() {
        lock.withLock { isStopped = true }
        for handle in handles { query.removeObserver(withHandle: handle) }
        sequence?.cancel()
    }

    /// Whether the list from the events of `childEvents()` is that of the last value event.
    var isListed: Bool { lock.withLock { listed == children } }

    private func note(_ fault: String) { lock.withLock { found.append(fault) } }

    private func take(_ event: DatabaseEvent) {
        let child = Child(key: event.snapshot.key, string: Self.string(event.snapshot.valueInExportFormat()))
        lock.withLock {
            let index = listed.firstIndex { $0.key == child.key }
            let description = "\(query.ref.url): in the sequence \(event.type) \(child.key)"
            guard (index == nil) == (event.type == .childAdded) else {
                return found.append("\(description), where there is \(index == nil ? "none" : "one already")")
            }
            if let index { listed.remove(at: index) }
            switch event {
            case .childRemoved: break
            case .childChanged: listed.insert(child, at: index ?? 0)
            case .childAdded(_, let previous), .childMoved(_, let previous):
                let before = previous.map { key in listed.firstIndex { $0.key == key } } ?? -1
                guard let before else { return found.append("\(description) after \(previous ?? ""), which is absent") }
                listed.insert(child, at: before + 1)
            }
        }
    }

    var faults: [String] { lock.withLock { found } }
    var eventCount: Int { lock.withLock { count } }
    /// The last value event as a string; only equal values have equal strings.
    var value: String? { lock.withLock { latest } }

    private func take(_ kind: String, _ snapshot: DataSnapshot, after previous: String?) {
        let child = Child(key: snapshot.key, string: Self.string(snapshot.valueInExportFormat()))
        lock.withLock {
            if isStopped { return }
            count += 1
            let index = children.firstIndex { $0.key == child.key }
            let event = "\(query.ref.url): \(kind) \(child.key) after \(previous ?? "nothing")"
            guard (index == nil) == (kind == "added") else {
                found.append("\(event), where there is \(index == nil ? "none" : "one already")")
                return
            }
            if kind == "moved" { moves += 1 }
            if kind == "added" || kind == "moved" { reportedSiblings[child.key] = previous }
            if kind == "removed" { reportedSiblings.removeValue(forKey: child.key) }
            if let index {
                if kind == "changed" {
                    children[index] = child
                    return
                }
                children.remove(at: index)
                if kind == "removed" { return }
            }
            guard let previous else { return children.insert(child, at: 0) }
            guard let before = children.firstIndex(where: { $0.key == previous }) else {
                return found.append("\(event), which does not exist")
            }
            children.insert(child, at: before + 1)
        }
    }

    private func take(_ snapshot: DataSnapshot) {
        let reported = snapshot.children.compactMap { $0 as? DataSnapshot }.map {
            Child(key: $0.key, string: Self.string($0.valueInExportFormat()))
        }
        lock.withLock {
            if isStopped { return }
            count += 1
            latest = Self.string(snapshot.valueInExportFormat())
            let isExcused = moves > 0 && reportedSiblings.count > 1 && Self.siblings(reportedSiblings, match: reported)
            let byKey = children.sorted { $0.key < $1.key }
            if reported != children, !isExcused || reported.sorted(by: { $0.key < $1.key }) != byKey {
                found.append("\(query.ref.url): the value has \(reported), the child events add up to \(children)")
            }
            children = reported
            reportedSiblings = [:]
            moves = 0
        }
    }

    private static func siblings(_ reportedSiblings: [String: String?], match reported: [Child]) -> Bool {
        reportedSiblings.allSatisfy { key, previous in
            guard let index = reported.firstIndex(where: { $0.key == key }) else { return false }
            return previous == (index == 0 ? nil : reported[index - 1].key)
        }
    }

    static func string(_ value: Any?) -> String {
        switch value {
        case let map as [String: Any]:
            "{" + map.sorted { $0.key < $1.key }.map { "\($0.key)=\(string($0.value))" }.joined(separator: ",") + "}"
        case let list as [Any]: "[" + list.map { string($0) }.joined(separator: ",") + "]"
        case let string as String: "\"\(string)\""
        case let number as NSNumber: "\(number.doubleValue)"
        case nil, is NSNull: "null"
        default: "?\(value.map { "\(type(of: $0))" } ?? "")"
        }
    }
}
