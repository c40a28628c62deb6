import HearthModel
import HearthTree

/// What is known of a write before its data is there.
package enum TreeWriteScope: Sendable {
    /// The value or the priority of this location is replaced.
    case location(TreePath)
    /// A child whose key isn't known yet is put here.
    case child(of: TreePath)
    /// Some locations below this one are replaced.
    case below(TreePath)
}

/// Finds out what rules come to whatever the data is: from `auth`, keys and constants alone.
///
/// Nothing large has to be received and decoded for whom no data could give the right to write it. The answer errs on one
/// side: what isn't understood may hold.
struct TreeForesight {
    /// What a Boolean expression can come to.
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
        /// It depends on the data. Of a Boolean expression some outcomes may be impossible.
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

    /// Works out what depends on no data.
    private let evaluation: TreeEvaluation
    /// What the wildcards on the way stand for; nil where that isn't known yet.
    private var captures: [TreeKey?] = []

    init(auth: TreeAuth?) {
        evaluation = TreeEvaluation(
            before: Node.empty, after: nil, query: nil, auth: auth, now: 0, stepsMax: TreeRulesLimits.foresightStepsMax)
    }

    // MARK: Rules

    /// Whether there may be data with which the write is granted by a `.write` from the root to what is written.
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
            // Too much to find out.
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
        case .parent(let target), .look(_, let target): return try combine([target], nil)
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
    ///   - texts: positions of operands that have to be strings.
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

    /// `&&` or `||`: operands in their order, up to the first that decides or fails.
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
            // Of another kind than Boolean: what is done with it decides.
            case .known: return .open(.any)
            case .failed: possible.insert(.fails)
            case .open(let outcomes): possible.formUnion(outcomes)
            }
        }
        // In place of a value that isn't Boolean a single outcome would be taken for one.
        return possible == .fails ? .failed : .open(possible)
    }
}

extension TreeRuleset {
    /// Whether a write may be allowed with some data: false only when these rules refuse it whatever is there and whatever is
    /// written. For requests that are too large to be received or decoded for nothing.
    package func mayGrantWrite(_ scope: TreeWriteScope, auth: TreeAuth?) -> Bool {
        var foresight = TreeForesight(auth: auth)
        return foresight.mayGrant(scope, root)
    }
}
