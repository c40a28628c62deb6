import HearthModel
import HearthTree

/// What rules know as `auth`: an object with `uid`, `provider` and `token`.
package typealias TreeAuth = JSONValue

/// Compiled rules of a Realtime Database: who may read and write where, which data is valid, and what is indexed.
///
/// A document is read (`RulesJSON`), its expressions are parsed (`TreeSyntax`), checked and compiled (`TreeExpression`) into a tree
/// of `TreeRulesNode`s, which `TreeJudge` walks for each decision. A ruleset never changes; decisions on several threads at
/// once are safe. No decision does I/O but for its `TreeData`, and none goes on without a bound.
///
/// Source: "Security Rules" and "API reference" of the Realtime Database's documentation.
package final class TreeRuleset: Sendable {
    /// As it was given, comments and all.
    package let string: [UInt8]
    let root: TreeRulesNode

    let lines: LineIndex

    private init(string: [UInt8], root: TreeRulesNode, lines: LineIndex) {
        self.string = string
        self.root = root
        self.lines = lines
    }

    /// Compiles a rules document.
    package static func compile(_ string: [UInt8]) throws(TreeRulesError) -> TreeRuleset {
        guard string.count <= TreeRulesLimits.documentSizeBytesMax else {
            throw TreeRulesError(
                line: 1, column: 1,
                message: "Rules are too large: \(string.count) bytes of at most "
                    + "\(TreeRulesLimits.documentSizeBytesMax).")
        }
        guard String(validating: string, as: UTF8.self) != nil else {
            throw TreeRulesError(line: 1, column: 1, message: "Parse error: the rules are not valid UTF-8.")
        }
        let lines = LineIndex(string)
        do throws(TreeSyntaxError) {
            let document = try RulesJSONParser.parse(string)
            return TreeRuleset(string: string, root: try TreeRulesBuilder.build(document), lines: lines)
        } catch {
            let place = lines.position(Int32(error.offset))
            throw TreeRulesError(line: place.line, column: place.column, message: error.message)
        }
    }

    /// Whether a text is meant for rules of the Realtime Database, not for those of Firestore: its first word is a brace.
    package static func isDocument(_ string: [UInt8]) -> Bool { RulesJSONParser.beginsWithObject(string) }

    /// Everybody may read and write everything: what an emulator has before it is given rules.
    package static let open = constant(#"{"rules":{".read":true,".write":true}}"#)
    /// Nobody may read or write anything.
    package static let locked = constant(#"{"rules":{".read":false,".write":false}}"#)

    private static func constant(_ string: String) -> TreeRuleset {
        do throws(TreeRulesError) {
            return try compile(Array(string.utf8))
        } catch {
            preconditionFailure("rules of our own are refused: \(error)")
        }
    }

    // MARK: Decisions

    /// Whether all that is at a place may be read, or what a query finds among its children.
    /// - Parameters:
    ///   - query: nil for the place itself.
    ///   - auth: nil when nobody is signed in.
    ///   - now: milliseconds since 1970.
    /// - Throws: when the data can't be read.
    package func mayRead(
        _ path: TreePath, query: TreeQuery?, auth: TreeAuth?, data: any TreeData, now: Int64
    ) throws(Status) -> Bool {
        try mayRead(path, query: query, auth: auth, data: data, now: now, stepsMax: TreeRulesLimits.stepsMax) ?? false
    }

    /// The same within a number of steps.
    /// - Returns: nil when the decision takes more.
    package func mayRead(
        _ path: TreePath, query: TreeQuery?, auth: TreeAuth?, data: any TreeData, now: Int64, stepsMax: Int
    ) throws(Status) -> Bool? {
        let evaluation = TreeEvaluation(
            before: data, after: nil, query: query, auth: auth, now: now, stepsMax: stepsMax)
        let isAllowed = try TreeJudge(self, evaluation).mayRead(path)
        return evaluation.isOutOfSteps ? nil : isAllowed
    }

    /// Whether changes may be made, all together.
    /// - Parameters:
    ///   - changes: with server values worked out.
    ///   - before: the tree that they change.
    ///   - after: the tree with all of them.
    ///   - stepsMax: of the decision; what takes more is denied.
    /// - Throws: when the data can't be read.
    package func mayWrite(
        _ changes: [TreeChange], auth: TreeAuth?, before: any TreeData, after: any TreeData, now: Int64,
        stepsMax: Int = TreeRulesLimits.stepsMax
    ) throws(Status) -> TreeVerdict {
        let evaluation = TreeEvaluation(
            before: before, after: after, query: nil, auth: auth, now: now, stepsMax: stepsMax)
        return try TreeJudge(self, evaluation).mayWrite(changes)
    }

    // MARK: Indexes

    /// Every `.indexOn`: where it stands, as keys and names of wildcards, and what it asks for.
    package var indexDefinitions: [(pattern: [String], indexes: [TreeQuery.Index])] {
        var found: [(pattern: [String], indexes: [TreeQuery.Index])] = []
        func visit(_ node: TreeRulesNode, _ pattern: [String]) {
            if !node.indexes.isEmpty { found.append((pattern, node.indexes)) }
            for (key, child) in node.children.sorted(by: { $0.key < $1.key }) { visit(child, pattern + [key.string]) }
            if let (name, child) = node.wildcard { visit(child, pattern + [name]) }
        }
        visit(root, [])
        return found
    }

    /// Whether the children of a place may be queried by an index. By key and by priority they always may.
    package func hasIndex(_ index: TreeQuery.Index, at path: TreePath) -> Bool {
        switch index {
        case .key, .priority: true
        case .value, .child: root.node(at: path)?.indexes.contains(index) ?? false
        }
    }
}
