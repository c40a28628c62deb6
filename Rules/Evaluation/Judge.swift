import HearthModel

/// Walks the match blocks of a ruleset for one operation and evaluates the rules of the blocks that apply.
struct Judge {
    enum Target {
        /// All segments are known.
        case document
        /// A document of a collection with an unknown id: the path has one segment more than its known strings.
        case collection
        /// A document of a collection somewhere below the first segments: these are followed by the collection's id
        /// and, if it is known, the document's id.
        case group(parentCount: Int)
    }

    private let evaluation: Evaluation
    private let target: Target
    private let methods: MethodSet
    private var outcomes: [RulesOutcome] = []
    private var isAllowed = false

    init(_ evaluation: Evaluation, target: Target) {
        self.evaluation = evaluation
        self.target = target
        methods = MethodSet(evaluation.request.method)
    }

    var verdict: RulesVerdict {
        RulesVerdict(
            isAllowed: isAllowed && evaluation.failure == nil, outcomes: outcomes, failure: evaluation.failure)
    }

    mutating func run(_ program: Program) {
        for match in program.matches where !isDone { walk(match) }
    }

    private var isDone: Bool { isAllowed || evaluation.isAborted }

    private mutating func walk(_ match: MatchProgram) {
        guard !match.methods.isDisjoint(with: methods), mayApply(match) else { return }
        var applies: Bool?
        for item in match.items where !isDone {
            switch item {
            case .allow(let allow):
                guard !allow.methods.isDisjoint(with: methods) else { continue }
                let holds = applies ?? bind(match)
                applies = holds
                if holds { judge(allow) }
            case .match(let inner):
                walk(inner)
                // Inner blocks may have rebound the captures after a recursive wildcard.
                if match.globIndex != nil { applies = nil }
            }
        }
    }

    // MARK: Matching

    /// The number of segments of the path, including unknown ones.
    private var segmentCount: Int {
        if case .collection = target { return evaluation.segments.count + 1 }
        return evaluation.segments.count
    }

    /// Matches the block's own segments up to a recursive wildcard; the enclosing blocks have been matched. False when
    /// neither the block nor any block in it applies.
    private func mayApply(_ match: MatchProgram) -> Bool {
        // In a collection group only a recursive wildcard can match the unknown segments.
        if case .group(let parentCount) = target {
            let end = min(match.globIndex ?? match.pattern.count, match.pattern.count)
            return end <= match.ownStart || (end <= parentCount && matches(match, match.ownStart..<end, offset: 0))
        }
        let end = match.globIndex ?? match.pattern.count
        if end <= match.ownStart { return true }
        return end <= segmentCount && matches(match, match.ownStart..<end, offset: 0)
    }

    /// Whether the block's whole path matches that of the document; binds the captures that `mayApply` leaves unbound.
    private func bind(_ match: MatchProgram) -> Bool {
        guard let glob = match.globIndex else {
            if case .group = target { return false }
            return match.pattern.count == segmentCount
        }
        let suffix = match.pattern.count - glob - 1
        let end: Int
        switch target {
        case .document, .collection: end = segmentCount - suffix
        case .group(let parentCount):
            // The ids of the collection and of the document.
            if suffix > 2 { return false }
            end = parentCount + 2 - suffix
        }
        guard end - glob >= match.globMinimum else { return false }
        if case .glob(let slot) = match.pattern[glob] {
            let known = min(end, evaluation.segments.count)
            var isOpen = end > known
            var last = known
            if case .group(let parentCount) = target {
                isOpen = true
                last = parentCount
            }
            // In version 1, a wildcard that would match a segment unknown to a query has no value.
            let isUnbound = isOpen && match.globMinimum > 0
            evaluation.captures[slot] = isUnbound ? .unbound : .glob(min(glob, last), last, isOpen: isOpen)
        }
        return matches(match, (glob + 1)..<match.pattern.count, offset: end - glob - 1)
    }

    /// Matches part of a pattern, and binds its captures.
    /// - Parameter offset: the difference between a position in the path and one in the pattern.
    private func matches(_ match: MatchProgram, _ range: Range<Int>, offset: Int) -> Bool {
        for index in range {
            let position = index + offset
            switch match.pattern[index] {
            case .string(let string):
                guard position < evaluation.segments.count, UTF8Order.equal(string, evaluation.segments[position])
                else {
                    return false
                }
            case .capture(let slot):
                evaluation.captures[slot] = position < evaluation.segments.count ? .segment(position) : .unbound
            case .glob: return false
            }
        }
        return true
    }

    // MARK: Decisions

    private mutating func judge(_ allow: AllowProgram) {
        let method = evaluation.request.method
        evaluation.observer?.willEvaluate(allowAt: allow.line, column: allow.column, method: method)
        var value = allow.condition?.run(evaluation) ?? .bool(true)
        // The next node checks what a node spends in addition; after the last node this check does it.
        if evaluation.spent > RulesLimits.evaluationsMax { value = evaluation.abort() }
        let outcome = outcome(of: value, allow)
        isAllowed = outcome.result == .allowed
        outcomes.append(outcome)
        evaluation.observer?.didEvaluate(outcome)
    }

    private func outcome(of value: RuleValue, _ allow: AllowProgram) -> RulesOutcome {
        var result = RulesOutcome.Result.failed
        var failure: RuleFailure?
        if evaluation.isAborted {
            failure = RuleFailure(evaluation.failure.map { .other($0.message) } ?? .exhausted)
        } else {
            switch value {
            case .bool(let holds): result = holds ? .allowed : .denied
            case .error(let error): failure = error
            default: failure = RuleFailure(.type(received: value.typeName, expected: "bool"))
            }
        }
        return RulesOutcome(
            line: allow.line, column: allow.column, result: result, method: evaluation.request.method, failure: failure,
            conditionLine: allow.conditionLine, conditionColumn: allow.conditionColumn)
    }
}
