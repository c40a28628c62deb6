/// The call graph: no function may reach itself, and no chain of calls may be too long. Both are checked before
/// anything is evaluated, so that an evaluation ends and its stack is bounded.
struct CallGraph {
    private enum State {
        case entered
        /// With the longest chain that begins here.
        case done([FunctionEntry])
    }

    private var states: [ObjectIdentifier: State] = [:]
    private var stack: [FunctionEntry] = []
    private(set) var hasCycle = false

    static func check(_ functions: [FunctionEntry], _ issues: inout IssueList) -> Bool {
        var graph = CallGraph()
        let callees = Set(functions.flatMap { $0.callees.map { ObjectIdentifier($0) } })
        for function in functions {
            let chain = graph.visit(function, &issues)
            // Of a chain that is too long, only the longest is reported: the one that has no caller.
            let isFirst = !callees.contains(ObjectIdentifier(function))
            if isFirst, chain.count > RulesLimits.callDepthMax { report(chain, &issues) }
        }
        return !graph.hasCycle
    }

    /// - Parameter chain: longer than allowed. The issue is located at the first excess function.
    private static func report(_ chain: [FunctionEntry], _ issues: inout IssueList) {
        let names = chain.prefix(RulesLimits.callDepthMax).map(\.declaration.name).joined(separator: "->")
        issues.error(
            "Maximum allowed call depth of \(RulesLimits.callDepthMax - 1) is reached for [\(names)] call stack.",
            at: chain[RulesLimits.callDepthMax].declaration.nameRange)
    }

    /// The longest chain of calls from a function.
    private mutating func visit(_ function: FunctionEntry, _ issues: inout IssueList) -> [FunctionEntry] {
        switch states[ObjectIdentifier(function)] {
        case .done(let chain): return chain
        case .entered:
            reportCycle(to: function, &issues)
            return []
        case nil: break
        }
        // A chain that is far too long is rejected at this length, before the stack overflows.
        if stack.count > 4 * RulesLimits.callDepthMax {
            hasCycle = true
            CallGraph.report(stack, &issues)
            return []
        }
        states[ObjectIdentifier(function)] = .entered
        stack.append(function)
        var longest: [FunctionEntry] = []
        for callee in function.callees {
            let chain = visit(callee, &issues)
            if chain.count > longest.count { longest = chain }
        }
        stack.removeLast()
        let chain = [function] + longest.prefix(4 * RulesLimits.callDepthMax)
        states[ObjectIdentifier(function)] = .done(chain)
        return chain
    }

    private mutating func reportCycle(to function: FunctionEntry, _ issues: inout IssueList) {
        hasCycle = true
        guard let start = stack.firstIndex(where: { $0 === function }) else { return }
        let cycle = stack[start...].map(\.declaration.name)
        issues.error(
            cycle.count == 1
                ? "Recursive call is not allowed."
                : "Detected a call cycle between [\(cycle.joined(separator: ","))] functions.",
            at: function.declaration.nameRange)
    }
}
