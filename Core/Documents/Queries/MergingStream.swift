import HearthModel

/// Merges streams in the order of their keys; a document that comes from several appears once.
final class MergingStream: CandidateStream {
    private let inputs: [CandidateStream]
    private var heads: [Candidate?] = []
    private var isPrimed = false
    private var last: [UInt8]?

    init(_ inputs: [CandidateStream]) {
        self.inputs = inputs
    }

    override func next() throws(Status) -> Candidate? {
        if !isPrimed {
            for input in inputs { heads.append(try input.next()) }
            isPrimed = true
        }
        while let index = smallest() {
            let candidate = heads[index]!
            heads[index] = try inputs[index].next()
            if candidate.orderKey == last { continue }
            last = candidate.orderKey
            return candidate
        }
        return nil
    }

    private func smallest() -> Int? {
        var best: Int?
        for index in heads.indices {
            guard let head = heads[index] else { continue }
            if let present = best, UTF8Order.compare(heads[present]!.orderKey, head.orderKey) <= 0 { continue }
            best = index
        }
        return best
    }
}
