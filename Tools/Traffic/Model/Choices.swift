/// Where random traffic takes its decisions from: a seed, which repeats them, or the input of a fuzzer, which steers them.
package final class Choices {
    private var state: UInt64
    private var input: [UInt8]?
    private var position = 0

    package init(seed: UInt64) { state = seed }

    package init(input: [UInt8]) {
        state = 0
        self.input = input
    }

    /// Whether the fuzzer's input is used up: all further decisions are 0.
    package var isExhausted: Bool { input.map { position >= $0.count } ?? false }

    /// SplitMix64.
    private func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 on.
    package func below(_ bound: Int) -> Int {
        guard bound > 1 else { return 0 }
        guard let input else { return Int(next() % UInt64(bound)) }
        var number = 0
        var reach = 1
        while reach < bound {
            number = number << 8 | (position < input.count ? Int(input[position]) : 0)
            position += 1
            reach <<= 8
        }
        return number % bound
    }

    package func between(_ range: ClosedRange<Int>) -> Int { range.lowerBound + below(range.count) }
    package func chance(_ percent: Int) -> Bool { below(100) < percent }
    package func isOne(in count: Int) -> Bool { below(count) == count - 1 }
    package func pick<Element>(_ choices: [Element]) -> Element { choices[below(choices.count)] }

    /// The decisions of a part, which can then be repeated alone.
    package func seed() -> UInt64 { next() }

    // MARK: Sizes

    /// Powers of two, multiples of an HTTP/2 frame, and the sizes of the server's buffers.
    private static let edges: [Int] = {
        var edges = (0...19).map { 1 << $0 } + (1...20).map { $0 << 14 }
        // Of a frame and its header, the output of one flush, a read, and a chunk with its framing.
        edges += [(16 << 10) + 9, 17 << 10, 160 << 10, 160 << 10, 160 << 10, 128 << 10, 1_000, 4_096 + 9]
        return edges.sorted()
    }()

    /// A size around the edge of some buffer: one of the positions within 64 bytes, or somewhat below, where heads and
    /// frame headers have taken their part.
    package func size(atMost bytesMax: Int = 512 << 10) -> Int {
        if isOne(in: 8) { return below(min(bytesMax, 2_048)) }
        let edges = Choices.edges
        let size = pick(edges) + (chance(60) ? between(-64...64) : -below(700))
        return max(0, min(bytesMax, size))
    }

    /// Several pieces whose sizes are around edges.
    package func pieces(totalMax: Int) -> [Int] {
        switch below(8) {
        case 0: return []
        case 1...4: return [size(atMost: totalMax)]
        case 5: return (0..<between(2...40)).map { _ in below(min(200, max(1, totalMax))) }
        default:
            var pieces: [Int] = []
            var rest = totalMax
            for _ in 0..<between(2...6) {
                let piece = size(atMost: rest)
                pieces.append(piece)
                rest -= piece
            }
            return pieces
        }
    }
}
