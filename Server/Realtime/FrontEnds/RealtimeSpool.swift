import HearthHost
import HearthConcurrency
import HearthModel
import HearthNetwork

/// Writes a large answer in the requested form: in memory while it is small, then to a file.
///
/// Used by one thread.
final class RealtimeSpool {
    enum Outcome {
        /// Compact JSON: it is formatted when it is sent.
        case memory([UInt8])
        case file(SpillFile)
    }

    private let call: RealtimeCall
    private let folder: String
    private let budget: MemoryBudget
    private var memory: [UInt8] = []
    private var file: SpillFile?
    private var pretty = PrettyJSON()
    private var sizeBytes = 0

    init(_ call: RealtimeCall, folder: String, _ budget: MemoryBudget) {
        self.call = call
        self.folder = folder
        self.budget = budget
    }

    /// Writes a piece of compact JSON, and empties it.
    /// - Throws: RESOURCE_EXHAUSTED when the answer exceeds the limit, INVALID_ARGUMENT when its time is over.
    func write(_ piece: inout [UInt8]) throws(Status) {
        sizeBytes += piece.count
        if sizeBytes > Limits.realtimeReadBytesMax {
            throw .resourceExhausted(
                "Data requested exceeds the maximum size that can be accessed with a single request.")
        }
        try call.checkTime()
        if file == nil, memory.count + piece.count <= Limits.realtimeReadMemoryBytesMax {
            memory += piece
        } else {
            if file == nil {
                try spill()
            }
            try append(piece)
        }
        piece.removeAll(keepingCapacity: true)
    }

    private func spill() throws(Status) {
        file = SpillFile(folder: folder, memoryBytesMax: 0, budget: budget.reservation(for: call.requester))
        if let callback = call.parameters.callback { try appendAsIs(RealtimeCall.prefix(ofCall: callback)) }
        let begun = memory
        memory = []
        try append(begun)
    }

    private func append(_ piece: [UInt8]) throws(Status) {
        guard call.parameters.form == .pretty else { return try appendAsIs(piece) }
        var output: [UInt8] = []
        output.reserveCapacity(piece.count * 2)
        pretty.append(piece, to: &output)
        try appendAsIs(output)
    }

    private func appendAsIs(_ bytes: [UInt8]) throws(Status) { try file?.append(bytes) }

    func finish() throws(Status) -> Outcome {
        guard let file else { return .memory(memory) }
        if call.parameters.form == .pretty { try file.append([UInt8(ascii: "\n")]) }
        if call.parameters.callback != nil { try file.append(RealtimeCall.suffixOfCall) }
        return .file(file)
    }
}
