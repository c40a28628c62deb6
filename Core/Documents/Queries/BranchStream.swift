import HearthEngine
import HearthModel

/// The candidates of one branch of the plan, filtered, and ordered as far as its sources order them.
final class BranchStream: CandidateStream {
    private let branch: QueryPlan.Branch
    private let context: QueryContext
    private let join: JoinCursor
    /// Whether the cursor returns the documents themselves.
    private let scansDocuments: Bool
    private let isFullyOrdered: Bool
    private var isOver = false
    /// Where each component of the present suffix ends, and whether it is cut.
    private var components: [(end: Int, isCut: Bool)] = []
    private var hasCutComponent = false
    /// Where the name begins in the present suffix.
    private var nameStart: Int { components.last?.end ?? 0 }

    init(_ branch: QueryPlan.Branch, _ context: QueryContext) {
        self.branch = branch
        self.context = context
        let isSingle = branch.sources.count == 1
        let scansDocuments =
            isSingle && branch.sources[0].keyspace == .documents
            && !(context.keysOnly && branch.residual.isEmpty && branch.alternatives.isEmpty)
        self.scansDocuments = scansDocuments
        isFullyOrdered = branch.isFullyOrdered(context.query.orders)
        join = JoinCursor(
            branch.sources.map {
                SuffixCursor(
                    $0, reverse: branch.reverse, values: scansDocuments, snapshot: context.view.snapshot,
                    meter: context.meter)
            })
    }

    override func next() throws(Status) -> Candidate? {
        while !isOver, try join.next() {
            if let candidate = try candidate(join.suffix) { return candidate }
        }
        return nil
    }

    /// Filters from cheap to expensive: first by the suffix, then by the document.
    private func candidate(_ suffix: [UInt8]) throws(Status) -> Candidate? {
        guard findComponents(suffix) else { throw Self.damaged }
        let name = branch.nameComplemented ? suffix[nameStart...].map(~)[...] : suffix[nameStart...]
        guard let key = documentKey(name) else { throw Self.damaged }
        if let overlay = context.overlay, overlay.replaces(key) { return nil }
        if branch.checksScope, !context.matcher.isInScope(key) { return nil }
        if let names = branch.names, !names.contains(context.query.relativeName(key: key)) { return nil }
        for filter in branch.components where !filter.ranges.contains(component(filter.component, suffix)) {
            return nil
        }
        var candidate = Candidate(key: key, orderKey: [], isComplete: true)
        if context.needsOrderKeys || !isFullyOrdered || hasCutComponent {
            appendOrderKey(suffix, name, to: &candidate)
            if !isWithinBounds(candidate) { return nil }
        }
        if scansDocuments {
            candidate.document = try join.document()
            context.meter.chargeDocument(candidate.document?.fields.count ?? 0)
        }
        if !branch.residual.isEmpty || !branch.alternatives.isEmpty {
            if candidate.document == nil { candidate.document = try context.load(key) }
            guard let document = candidate.document,
                try context.matcher.matches(branch.residual, key: key, fields: document.fields),
                try matchesAlternative(key, document)
            else { return nil }
        }
        return candidate
    }

    private func matchesAlternative(_ key: [UInt8], _ document: StoredDocument) throws(Status) -> Bool {
        if branch.alternatives.isEmpty { return true }
        for alternative in branch.alternatives {
            if try context.matcher.matches(alternative, key: key, fields: document.fields) { return true }
        }
        return false
    }

    private static var damaged: Status { Status(.dataLoss, "An index entry can't be read.") }

    /// Whether a candidate is within the query's bounds, as far as its order key is known. Order keys only grow, so the
    /// first one after the upper bound ends the scan.
    private func isWithinBounds(_ candidate: Candidate) -> Bool {
        guard context.query.hasBounds else { return true }
        if let upper = context.query.bounds.upper, UTF8Order.compare(candidate.orderKey, upper) >= 0 {
            isOver = true
            return false
        }
        return !candidate.isComplete || UTF8Order.compare(candidate.orderKey, context.query.bounds.lower) >= 0
    }

    /// False when the suffix can't be read.
    private func findComponents(_ suffix: [UInt8]) -> Bool {
        components.removeAll(keepingCapacity: true)
        hasCutComponent = false
        for complemented in branch.complemented {
            guard let end = IndexValue.end(of: suffix, from: nameStart, complemented: complemented) else {
                return false
            }
            components.append(end)
            if end.isCut { hasCutComponent = true }
        }
        return true
    }

    /// A component in ascending form.
    private func component(_ index: Int, _ suffix: [UInt8]) -> [UInt8] {
        let bytes = suffix[range(index)]
        return branch.complemented[index] ? bytes.map(~) : Array(bytes)
    }

    private func range(_ index: Int) -> Range<Int> {
        (index == 0 ? 0 : components[index - 1].end)..<components[index].end
    }

    private func documentKey(_ name: ArraySlice<UInt8>) -> [UInt8]? {
        var key: [UInt8] = []
        key.reserveCapacity(branch.keyPrefix.count + name.count)
        key.append(contentsOf: branch.keyPrefix)
        key.append(contentsOf: name)
        return branch.nameIsPath ? DocumentKey.fromPathKey(key) : key
    }

    private func appendOrderKey(_ suffix: [UInt8], _ name: ArraySlice<UInt8>, to candidate: inout Candidate) {
        var scanned = 0
        for part in branch.parts {
            switch part {
            case .constant(let bytes): candidate.orderKey.append(contentsOf: bytes)
            case .scanned:
                let component = suffix[range(scanned)]
                NormalizedQuery.appendComponent(Array(component), descending: branch.reverse, to: &candidate.orderKey)
                scanned += 1
                if components[scanned - 1].isCut {
                    candidate.isComplete = false
                    return
                }
            case .name:
                NormalizedQuery.appendComponent(
                    branch.namePrefix + name, descending: context.query.nameDescending, to: &candidate.orderKey)
            }
        }
        candidate.isComplete = isFullyOrdered
    }
}
