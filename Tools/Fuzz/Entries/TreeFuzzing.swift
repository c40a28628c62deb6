import HearthTree
import HearthModel

/// Entry points for fuzzing trees and queries: any bytes are rejected or satisfy all invariants. A violated invariant
/// traps.
package enum TreeFuzzing {
    /// Three lines of JSON: a client's tree, the server's tree, and an update of it.
    package static func fuzzTree(_ bytes: [UInt8]) {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 2, omittingEmptySubsequences: false)
            .map { Array($0) }
        let trees = lines.map { parsedTree($0) }
        guard let server = trees.count > 1 ? trees[1] : trees[0] else { return }
        fuzzRanges(client: trees[0] ?? .empty, server: server)
        do throws(TreeDataError) {
            fuzzUpdate(of: server, try TreeJSON.merge(lines.count > 2 ? lines[2] : lines[0], at: .root))
        } catch { precondition(!error.message.isEmpty, "refused without a reason") }
    }

    /// - Returns: the tree of a JSON string, with values for deferred ones; nil when it is rejected.
    private static func parsedTree(_ string: [UInt8]) -> Node? {
        let value = try? TreeJSON.value(string)
        if let value {
            let printed = self.string(of: value)
            guard let again = try? TreeJSON.value(printed) else { preconditionFailure("printed JSON is refused") }
            precondition(self.string(of: again) == printed, "JSON is printed in two ways")
            if case .object(let members) = value {
                let names = (try? TreeJSON.members(string))?.map { TreeKey($0.name) }
                precondition(names == members.map { TreeKey($0.name) }, "an object has other members")
            }
        }
        let node: Node
        do throws(TreeDataError) { node = try TreeJSON.node(string) } catch {
            precondition(!error.message.isEmpty, "refused without a reason")
            return nil
        }
        precondition(value != nil, "data that is no JSON")
        let export = self.string(of: node, .export)
        guard let again = try? TreeJSON.node(export) else { preconditionFailure("an export is refused") }
        precondition(self.string(of: again, .export) == export, "an export is printed in two ways")
        guard let resolved = try? node.resolved(nowMilliseconds: 7, old: Node.empty, at: .root),
            let resolvedAgain = try? again.resolved(nowMilliseconds: 7, old: Node.empty, at: .root)
        else { preconditionFailure("values are not resolved") }
        precondition(!resolved.hasDeferred, "a value is still deferred")
        precondition(resolved.hash == resolvedAgain.hash, "an export has another hash")
        guard let plain = try? TreeJSON.node(self.string(of: resolved, .plain)) else {
            preconditionFailure("the plain form is refused")
        }
        precondition(plain.hash == withoutPriorities(resolved).hash, "the plain form has another value")
        return resolved
    }

    private static func string(of value: JSONValue) -> [UInt8] {
        var string: [UInt8] = []
        TreeJSON.append(value, to: &string)
        return string
    }

    private static func string(of node: Node, _ form: TreeJSON.Form) -> [UInt8] {
        var string: [UInt8] = []
        TreeJSON.append(node, to: &string, form: form)
        return string
    }

    private static func withoutPriorities(_ node: Node) -> Node {
        if let value = node.value { return Node(value) }
        return Node(children: node.children.map { ($0.key, withoutPriorities($0.node)) })
    }

    private static func fuzzRanges(client: Node, server: Node) {
        for length in [0, 60, 512] {
            let hash = CompoundHash(of: client, splittingOver: length)
            guard let received = try? CompoundHash(wire: hash.wire) else {
                preconditionFailure("a compound hash is refused")
            }
            precondition(received == hash, "a compound hash is received as another")
            precondition(hash.differences(from: client).isEmpty, "a tree differs from itself")
            var updated = client
            for range in hash.differences(from: server) { updated = range.applied(to: updated) }
            precondition(updated.hash == server.hash, "the ranges lead elsewhere")
        }
    }

    private static func fuzzUpdate(of base: Node, _ update: TreeUpdate) {
        var changes: [TreeChange] = []
        for change in update.changes {
            guard let resolved = try? change.resolved(nowMilliseconds: 7, old: base) else {
                preconditionFailure("a change is not resolved")
            }
            changes.append(resolved)
        }
        let changed = base.applying(changes)
        let overlay = TreeOverlay(base: base, changes: changes)
        for change in changes {
            for depth in 0...change.location.count {
                let path = TreePath(keys: Array(change.location.keys.prefix(depth)))
                precondition((try? overlay.node(at: path)) == changed.node(at: path), "an overlay shows another node")
                precondition(
                    (try? overlay.value(at: path)) == changed.value(at: path), "an overlay shows another value")
                precondition((try? overlay.exists(at: path)) == changed.exists(at: path), "an overlay has other paths")
                precondition(
                    (try? overlay.priority(at: path)) == changed.priority(at: path), "an overlay shows another priority"
                )
                precondition(
                    (try? overlay.keys(at: path, after: nil, limit: 3)) == changed.keys(at: path, after: nil, limit: 3),
                    "an overlay has other children")
            }
        }
        let single = TreeChange.oneByOne(changes).reduce(base) { $0.applying($1) }
        precondition(single == changed, "changes one by one come to something else")
    }
}

extension TreeFuzzing {
    /// A line with a query, in the wire format or as parameters of REST, and a tree for the query.
    package static func fuzzQuery(_ bytes: [UInt8]) {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
            .map { Array($0) }
        guard lines.count == 2, let query = wireQuery(lines[0]) ?? parameterQuery(lines[0]),
            let node = try? TreeJSON.node(lines[1]), !node.hasDeferred
        else { return }
        let all = node.children.sorted { query.compare($0, $1) < 0 }
        for (child, next) in zip(all, all.dropFirst()) {
            precondition(query.compare(child, next) < 0 && query.compare(next, child) > 0, "the order is none")
        }
        let inside = all.filter { query.contains($0.key, $0.node) }
        let window = query.limit.map { query.isLimitedToLast ? inside.suffix($0) : inside.prefix($0) } ?? inside[...]
        precondition(query.orderedChildren(of: node).map(\.key) == window.map(\.key), "a window has other children")
        let result = query.result(of: node)
        precondition(
            query.isUnfiltered ? result == node : result.children.map(\.key) == window.map(\.key).sorted(),
            "a result isn't its window")
        // A query of its own result returns all of it.
        if !query.isUnfiltered { precondition(query.result(of: result) == result, "a result isn't its own result") }
    }

    private static func wireQuery(_ string: [UInt8]) -> TreeQuery? {
        guard let wire = try? TreeJSON.value(string), let query = try? TreeQuery(wire: wire) else { return nil }
        guard let again = try? TreeQuery(wire: query.wire) else { preconditionFailure("a query is refused") }
        precondition(again == query, "a query is received as another")
        return query
    }

    private static func parameterQuery(_ string: [UInt8]) -> TreeQuery? {
        let parameters = string.split(separator: UInt8(ascii: "&")).map { part in
            let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            return (
                name: String(decoding: pair[0], as: UTF8.self),
                value: pair.count > 1 ? String(decoding: pair[1], as: UTF8.self) : ""
            )
        }
        guard let query = try? TreeQuery(rest: parameters) else { return nil }
        guard let wire = try? TreeQuery(wire: query.wire) else { preconditionFailure("a query of REST is refused") }
        precondition(wire == query, "a query of REST is received as another")
        return query
    }
}
