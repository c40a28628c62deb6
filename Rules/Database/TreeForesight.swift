import HearthModel
import HearthTree

/// What is known of a write before its data is received.
package enum TreeWriteScope: Sendable {
    /// The value or the priority of this location is replaced.
    case location(TreePath)
    /// A child with a key that is not known yet is added here.
    case child(of: TreePath)
    /// Some locations below this one are replaced.
    case below(TreePath)
}

/// Evaluates rules without the data: from `auth`, keys and constants alone.
///
/// A large request is not received and decoded when no data could make it allowed. The result errs on one side: an
/// expression that cannot be decided may hold.
struct TreeForesight {
    /// The possible results of a Boolean expression.
    private struct Outcomes: OptionSet {
        let rawValue: UInt8

        static let holds = Outcomes(rawValue: 1)
        static let holdsNot = Outcomes(rawValue: 2)
        static let fails = Outcomes(rawValue: 4)
        static let any: Outcomes = [.holds, .holdsNot, .fails]
    }

    private enum Foreseen {
        case known(TreeRuleValue)
        case failed
        /// The value depends on the data. Of a Boolean expression some outcomes may be impossible.
        case open(Outcomes)

        init(_ outcomes: Outcomes) {
            switch outcomes {
            case .holds: self = .known(.bool(true))
            case .holdsNot: self = .known(.bool(false))
            case .fails: self = .failed
            default: self = .open(outcomes)
            }
        }

        var outcomes: Outcomes {
            switch self {
            case .known(.bool(let value)): value ? .holds : .holdsNot
            case .known, .failed: .fails
            case .open(let outcomes): outcomes
            }
        }
    }

    /// Evaluates the parts that do not depend on data.
    private let evaluation: TreeEvaluation
    /// The keys that match the wildcards on the path; nil where they are not known yet.
    private var captures: [TreeKey?] = []

    init(auth: TreeAuth?) {
        evaluation = TreeEvaluation(
            before: Node.empty, after: nil, query: nil, auth: auth, now: 0, stepsMax: TreeRulesLimits.foresightStepsMax)
    }

    // MARK: Rules

    /// Whether data may exist with which a `.write` on the path from the root grants the write.
    mutating func mayGrant(_ scope: TreeWriteScope, _ root: TreeRulesNode) -> Bool {
        do throws(TreeFailure) {
            switch scope {
            case .location(let path): return try mayGrant(path, root) { _, _ throws(TreeFailure) in false }
            case .child(let parent):
                return try mayGrant(parent, root) { (foresight, node) throws(TreeFailure) in
                    try foresight.mayGrantBelow(node, levels: 1)
                }
            case .below(let path):
                return try mayGrant(path, root) { (foresight, node) throws(TreeFailure) in
                    try foresight.mayGrantBelow(node, levels: TreeLimits.standard.depthMax)
                }
            }
        } catch {
            // The decision takes too many steps.
            return true
        }
    }

    private mutating func mayGrant(
        _ path: TreePath, _ root: TreeRulesNode,
        orBelow: (inout TreeForesight, TreeRulesNode) throws(TreeFailure) -> Bool
    ) throws(TreeFailure) -> Bool {
        var node = root
        if try mayHold(node.write) { return true }
        for key in path.last == .priority ? path.keys.dropLast() : path.keys[...] {
            guard let child = node.child(key) else { return false }
            if child.isWildcard { captures.append(key) }
            node = child.node
            if try mayHold(node.write) { return true }
        }
        return try orBelow(&self, node)
    }

    private mutating func mayGrantBelow(_ node: TreeRulesNode, levels: Int) throws(TreeFailure) -> Bool {
        if levels == 0 { return false }
        for child in node.children.values {
            if try mayHold(child.write) { return true }
            if try mayGrantBelow(child, levels: levels - 1) { return true }
        }
        guard let child = node.wildcard?.node else { return false }
        captures.append(nil)
        defer { captures.removeLast() }
        if try mayHold(child.write) { return true }
        return try mayGrantBelow(child, levels: levels - 1)
    }

    private func mayHold(_ rule: TreeRule?) throws(TreeFailure) -> Bool {
        try evaluation.spend(1)
        guard let rule else { return false }
        return try foresee(rule.expression).outcomes.contains(.holds)
    }

    // MARK: Expressions

    private func foresee(_ expression: TreeExpression) throws(TreeFailure) -> Foreseen {
        try evaluation.spend(1)
        switch expression {
        case .constant(let value): return .known(value)
        case .auth: return try evaluated(.auth)
        case .now, .root, .data, .newData, .query: return .open(.any)
        case .capture(let index):
            guard let key = captures[index] else { return .open(.any) }
            return .known(.string(key.string))
        case .member(let target, let name): return try combine([target]) { .member($0[0], name) }
        case .element(let target, let index): return try combine([target, index]) { .element($0[0], $0[1]) }
        case .length(let target): return try combine([target]) { .length($0[0]) }
        case .negate(let operand): return try combine([operand]) { .negate($0[0]) }
        case .binary(let known, let first, let second):
            return try combine([first, second]) { .binary(known, $0[0], $0[1]) }
        case .string(let method, let target, let arguments):
            let strings = [target] + arguments
            return try combine(strings, strings: strings.indices) { .string(method, $0[0], Array($0.dropFirst())) }
        case .matches(let target, let pattern):
            return try combine([target], strings: 0..<1) { .matches($0[0], pattern) }
        case .child(let target, let path): return try combine([target, path], strings: 1..<2, nil)
        case .hasChild(let target, let path): return try combine([target, path], strings: 1..<2, nil)
        case .hasAllChildren(let target, let names):
            return try combine([target] + names, strings: 1..<names.count + 1, nil)
        case .parent(let target), .property(_, let target): return try combine([target], nil)
        case .not(let operand):
            let outcomes = try foresee(operand).outcomes
            var opposite = outcomes.intersection(.fails)
            if outcomes.contains(.holds) { opposite.insert(.holdsNot) }
            if outcomes.contains(.holdsNot) { opposite.insert(.holds) }
            return Foreseen(opposite)
        case .and(let operands): return try sequence(operands, goesOn: .holds)
        case .or(let operands): return try sequence(operands, goesOn: .holdsNot)
        case .conditional(let condition, let first, let second): return try conditional(condition, first, second)
        }
    }

    private func evaluated(_ expression: TreeExpression) throws(TreeFailure) -> Foreseen {
        do throws(TreeFailure) {
            return .known(try evaluation.evaluate(expression))
        } catch .mismatch {
            return .failed
        } catch {
            throw error
        }
    }

    /// An operation that evaluates all of its operands.
    /// - Parameters:
    ///   - strings: positions of operands that must be strings.
    ///   - rebuild: the operation on known operands; nil when it depends on the data in any case.
    private func combine(
        _ operands: [TreeExpression], strings: Range<Int> = 0..<0, _ rebuild: (([TreeExpression]) -> TreeExpression)?
    ) throws(TreeFailure) -> Foreseen {
        var known: [TreeExpression] = []
        for (position, operand) in operands.enumerated() {
            switch try foresee(operand) {
            case .failed: return .failed
            case .open: continue
            case .known(let value):
                if strings.contains(position) {
                    guard case .string = value else { return .failed }
                }
                known.append(.constant(value))
            }
        }
        guard let rebuild, known.count == operands.count else { return .open(.any) }
        return try evaluated(rebuild(known))
    }

    /// `&&` or `||`: operands in order, up to the first that decides or fails.
    private func sequence(_ operands: [TreeExpression], goesOn: Outcomes) throws(TreeFailure) -> Foreseen {
        var possible: Outcomes = []
        for operand in operands {
            let outcomes = try foresee(operand).outcomes
            possible.formUnion(outcomes.subtracting(goesOn))
            if !outcomes.contains(goesOn) { return Foreseen(possible) }
        }
        return Foreseen(possible.union(goesOn))
    }

    private func conditional(
        _ condition: TreeExpression, _ first: TreeExpression, _ second: TreeExpression
    ) throws(TreeFailure) -> Foreseen {
        let outcomes = try foresee(condition).outcomes
        if outcomes == .holds { return try foresee(first) }
        if outcomes == .holdsNot { return try foresee(second) }
        if outcomes == .fails { return .failed }
        var possible = outcomes.intersection(.fails)
        for (outcome, branch) in [(Outcomes.holds, first), (.holdsNot, second)] where outcomes.contains(outcome) {
            switch try foresee(branch) {
            case .known(.bool(let value)): possible.insert(value ? .holds : .holdsNot)
            // Not a Boolean: the operation on it decides.
            case .known: return .open(.any)
            case .failed: possible.insert(.fails)
            case .open(let outcomes): possible.formUnion(outcomes)
            }
        }
        // As an operand that is not Boolean, a single outcome would be mistaken for a known value.
        return possible == .fails ? .failed : .open(possible)
    }
}

extension TreeRuleset {
    /// Whether a write may be allowed with some data: false only when these rules deny it for any stored and any
    /// written data. It serves requests that are too large to be received or decoded in vain.
    package func mayGrantWrite(_ scope: TreeWriteScope, auth: TreeAuth?) -> Bool {
        var foresight = TreeForesight(auth: auth)
        return foresight.mayGrant(scope, root)
    }
}
