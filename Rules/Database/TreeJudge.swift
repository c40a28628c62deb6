import HearthModel
import HearthTree

/// One decision.
///
/// `.read` and `.write` grant access to their location and everything below it: the first rule that holds on the path
/// from the root is sufficient. `.validate` never grants; each one must hold for its own node if that is not empty
/// after the write. The checked nodes are those on the path to each written location, and all nodes in the written
/// data. A rule with an error does not hold.
struct TreeJudge {
    private let root: TreeRulesNode
    private let lines: LineIndex
    private let evaluation: TreeEvaluation

    init(_ ruleset: TreeRuleset, _ evaluation: TreeEvaluation) {
        root = ruleset.root
        lines = ruleset.lines
        self.evaluation = evaluation
    }

    private enum Refusal: Error {
        case denied(TreeDenial)
        case unreadable(Status)
    }

    // MARK: Reading

    func mayRead(_ path: TreePath) throws(Status) -> Bool {
        do throws(TreeFailure) {
            var node = root
            for depth in 0...path.count {
                if depth > 0 {
                    let key = path.keys[depth - 1]
                    guard let child = node.child(key) else { return false }
                    evaluation.keys.append(key)
                    if child.isWildcard { evaluation.captures.append(key) }
                    node = child.node
                }
                if let read = node.read, try evaluation.holds(read.expression) { return true }
            }
            return false
        } catch .unreadable(let status) {
            throw status
        } catch {
            return false
        }
    }

    // MARK: Writing

    func mayWrite(_ changes: [TreeChange]) throws(Status) -> TreeVerdict {
        let target = WrittenLocation(changes)
        do throws(Refusal) {
            try checkGrants(target, root, isGranted: false)
            if root.validates { try validate(target, root) }
            return .allowed
        } catch {
            switch error {
            case .denied(let denial): return .denied(denial)
            case .unreadable(let status): throw status
            }
        }
    }

    private func denial(_ reason: TreeDenial.Reason) -> Refusal {
        .denied(TreeDenial(path: TreePath(keys: evaluation.keys), reason: reason))
    }

    private func attempt<Value>(_ body: () throws(TreeFailure) -> Value) throws(Refusal) -> Value {
        do throws(TreeFailure) {
            return try body()
        } catch .unreadable(let status) {
            throw .unreadable(status)
        } catch {
            throw denial(.exhausted)
        }
    }

    /// Enters a child, runs `body`, and returns to the parent.
    private func descend(
        _ key: TreeKey, _ child: (node: TreeRulesNode, isWildcard: Bool), _ body: () throws(Refusal) -> Void
    ) throws(Refusal) {
        let known = evaluation.newNode
        evaluation.keys.append(key)
        if child.isWildcard { evaluation.captures.append(key) }
        evaluation.newNode = known?.child(key)
        try body()
        evaluation.newNode = known
        if child.isWildcard { evaluation.captures.removeLast() }
        evaluation.keys.removeLast()
    }

    /// Every written location must be granted, at itself or above. The recursion depth is that of the rules.
    private func checkGrants(
        _ location: WrittenLocation, _ rules: TreeRulesNode, isGranted: Bool
    ) throws(Refusal) {
        if isGranted { return }
        if let write = rules.write,
            try attempt({ () throws(TreeFailure) in try evaluation.holds(write.expression) })
        {
            return
        }
        if location.isWritten { throw denial(.notGranted) }
        for (key, inner) in location.children {
            guard let child = rules.child(key) else {
                evaluation.keys.append(key)
                throw denial(.notGranted)
            }
            try descend(key, child) { () throws(Refusal) in try checkGrants(inner, child.node, isGranted: false) }
        }
    }

    /// Evaluates the `.validate` of a node that is not empty after the write.
    private func validate(_ rules: TreeRulesNode) throws(Refusal) {
        guard let rule = rules.validate else { return }
        let holds = try attempt { () throws(TreeFailure) in
            let node = TreeSnapshot(isNew: true, keys: evaluation.keys, node: evaluation.newNode)
            guard try evaluation.exists(node) else { return true }
            return try evaluation.holds(rule.expression)
        }
        if !holds {
            let position = lines.position(Int32(rule.offset))
            throw denial(.invalid(line: position.line, column: position.column))
        }
    }

    /// Validates the path to the written locations.
    private func validate(_ location: WrittenLocation, _ rules: TreeRulesNode) throws(Refusal) {
        if location.isReplaced {
            try validateAll(rules)
            return
        }
        try validate(rules)
        for (key, inner) in location.children {
            guard let child = rules.child(key), child.node.validates else { continue }
            try descend(key, child) { () throws(Refusal) in try validate(inner, child.node) }
        }
    }

    /// Validates everything in the new value of a written location.
    private func validateAll(_ rules: TreeRulesNode) throws(Refusal) {
        let path = TreePath(keys: evaluation.keys)
        guard let after = evaluation.after else { return }
        let node: Node
        do throws(Status) {
            node = try after.node(at: path)
        } catch {
            throw .unreadable(error)
        }
        evaluation.newNode = node
        try validate(node, rules)
        evaluation.newNode = nil
    }

    private func validate(_ node: Node, _ rules: TreeRulesNode) throws(Refusal) {
        if node.isEmpty { return }
        try attempt { () throws(TreeFailure) in try evaluation.spend(1) }
        try validate(rules)
        if rules.wildcard?.node.validates != true, rules.children.count < node.childCount {
            // There are fewer rules than children.
            for (key, child) in rules.children where child.validates {
                let inner = node.child(key)
                if inner.isEmpty { continue }
                try descend(key, (child, false)) { () throws(Refusal) in try validate(inner, child) }
            }
            return
        }
        for (key, inner) in node.children {
            guard let child = rules.child(key), child.node.validates else { continue }
            try descend(key, child) { () throws(Refusal) in try validate(inner, child.node) }
        }
    }
}

/// The written locations as a tree, so that rules on common ancestors are evaluated once.
private final class WrittenLocation {
    /// Whether the value here was written.
    private(set) var isReplaced = false
    /// Whether something was written here: the value or the priority.
    private(set) var isWritten = false
    private(set) var children: [TreeKey: WrittenLocation] = [:]

    init() {}

    convenience init(_ changes: [TreeChange]) {
        self.init()
        for change in changes {
            let isPriority = change.path.last == .priority
            var location = self
            for key in isPriority ? change.path.keys.dropLast() : change.path.keys[...] {
                if let inner = location.children[key] {
                    location = inner
                } else {
                    let inner = WrittenLocation()
                    location.children[key] = inner
                    location = inner
                }
            }
            location.isWritten = true
            if !isPriority { location.isReplaced = true }
        }
    }
}
