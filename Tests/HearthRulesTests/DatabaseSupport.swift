import HearthModel
import HearthTree
import Testing

@testable import HearthRules

/// A tree from JSON in export form.
func tree(_ json: String) throws -> Node {
    try TreeJSON.node(Array(json.utf8))
}

/// Compiles valid rules of the Realtime Database.
func databaseRules(_ string: String, sourceLocation: SourceLocation = #_sourceLocation) throws -> TreeRuleset {
    do {
        return try TreeRuleset.compile(Array(string.utf8))
    } catch {
        Issue.record("\(error) in \(string)", sourceLocation: sourceLocation)
        throw error
    }
}

/// The error for invalid rules, in the form that a deployment reports; nil for valid ones.
func databaseRefusal(_ string: String) -> String? {
    do throws(TreeRulesError) {
        _ = try TreeRuleset.compile(Array(string.utf8))
        return nil
    } catch {
        return error.description
    }
}

/// A string as a JSON string.
func quoted(_ string: String) -> String {
    var bytes: [UInt8] = []
    TreeJSON.appendString(string, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
}

/// `auth` of a signed-in user.
func databaseUser(_ uid: String, _ claims: [(String, JSONValue)] = []) -> TreeAuth {
    .object([
        ("uid", .string(uid)), ("provider", "custom"),
        ("token", .object([("sub", .string(uid))] + claims.map { (name: $0.0, value: $0.1) })),
    ])
}

/// 2024-02-29T12:30:45.123Z
let databaseNow: Int64 = 1_709_209_845_123

extension TreeRuleset {
    func mayWrite(_ changes: [TreeChange], to tree: Node, auth: TreeAuth? = nil) throws -> TreeVerdict {
        try mayWrite(
            changes, auth: auth, before: tree, after: TreeOverlay(base: tree, changes: changes), now: databaseNow)
    }

    func maySet(_ path: TreePath, _ json: String, in tree: Node, auth: TreeAuth? = nil) throws -> Bool {
        let change = TreeChange(path: path, node: try TreeJSON.node(Array(json.utf8)))
        return try mayWrite([change], to: tree, auth: auth).isAllowed
    }

    func mayRead(_ path: TreePath, in tree: Node, auth: TreeAuth? = nil, query: TreeQuery? = nil) throws -> Bool {
        try mayRead(path, query: query, auth: auth, data: tree, now: databaseNow)
    }
}
