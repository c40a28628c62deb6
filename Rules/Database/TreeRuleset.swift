import HearthModel
import HearthTree

/// The value of `auth` in rules: an object with `uid`, `provider` and `token`.
package typealias TreeAuth = JSONValue

/// Compiled rules of a Realtime Database: who may read and write at which location, which data is valid, and what is
/// indexed.
///
/// A document is read (`RulesJSON`). Its expressions are parsed (`TreeSyntax`), checked and compiled (`TreeExpression`)
/// into a tree of `TreeRulesNode`s, which `TreeJudge` walks for each decision. A ruleset never changes; concurrent
/// decisions on several threads are safe. Decisions do no I/O except through their `TreeData`, and every decision is
/// bounded.
///
/// Source: "Security Rules" and "API reference" of the Realtime Database's documentation.
package final class TreeRuleset: Sendable {
    /// The source, including comments.
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
            let position = lines.position(Int32(error.offset))
            throw TreeRulesError(line: position.line, column: position.column, message: error.message)
        }
    }

    /// Whether a source contains rules of the Realtime Database, not of Firestore: its first token is a brace.
    package static func isDocument(_ string: [UInt8]) -> Bool { RulesJSONParser.beginsWithObject(string) }

    /// Allows all reads and writes: the default of an emulator.
    package static let open = constant(#"{"rules":{".read":true,".write":true}}"#)
    /// Denies all reads and writes.
    package static let locked = constant(#"{"rules":{".read":false,".write":false}}"#)

    private static func constant(_ string: String) -> TreeRuleset {
        do throws(TreeRulesError) {
            return try compile(Array(string.utf8))
        } catch {
            preconditionFailure("a constant ruleset is invalid: \(error)")
        }
    }

    // MARK: Decisions

    /// Whether everything at a location may be read, or the results of a query among its children.
    /// - Parameters:
    ///   - query: nil for the location itself.
    ///   - auth: nil when no user is signed in.
    ///   - now: milliseconds since 1970.
    /// - Throws: when the data cannot be read.
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
    ///   - changes: with resolved server values.
    ///   - before: the tree before the changes.
    ///   - after: the tree with all changes.
    ///   - stepsMax: the limit of the decision; a decision that needs more is a denial.
    /// - Throws: when the data cannot be read.
    package func mayWrite(
        _ changes: [TreeChange], auth: TreeAuth?, before: any TreeData, after: any TreeData, now: Int64,
        stepsMax: Int = TreeRulesLimits.stepsMax
    ) throws(Status) -> TreeVerdict {
        let evaluation = TreeEvaluation(
            before: before, after: after, query: nil, auth: auth, now: now, stepsMax: stepsMax)
        return try TreeJudge(self, evaluation).mayWrite(changes)
    }

    // MARK: Indexes

    /// Every `.indexOn`: its location, as keys and names of wildcards, and its indexes.
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

    /// Whether the children of a location may be queried by an index. Queries by key and by priority are always
    /// allowed.
    package func hasIndex(_ index: TreeQuery.Index, at path: TreePath) -> Bool {
        switch index {
        case .key, .priority: true
        case .value, .child: root.node(at: path)?.indexes.contains(index) ?? false
        }
    }
}
