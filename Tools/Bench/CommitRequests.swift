/// Commits of one random document each. They are encoded before the load; a request then only gets another document's
/// number and other values, whose encoding has the same length.
final class CommitRequests: RequestSource {
    /// An encoded commit, and where its parts are.
    private final class Template {
        let bytes: UnsafeMutableBufferPointer<UInt8>
        /// The end of the document's number.
        let numberEnd: Int
        let values: [Int]

        init(_ message: [UInt8], numberEnd: Int, values: [Int]) {
            bytes = .allocate(capacity: message.count)
            _ = bytes.initialize(from: message)
            self.numberEnd = numberEnd
            self.values = values
        }

        deinit { bytes.deallocate() }
    }

    private let documents: Int
    private var random: SeededRandom
    /// By the digits of the document's number, less one, then by the field that changes.
    private let templates: [[Template]]

    init(
        _ requests: BenchRequests, _ collection: String, documents: Int, _ fields: Workload.CommitFields, seed: UInt64
    ) {
        self.documents = documents
        var random = SeededRandom(seed: seed)
        var templates: [[Template]] = []
        // 9, 99, 999: the greatest number with so many digits.
        var number = 9
        while templates.isEmpty || number / 10 < documents - 1 {
            let choices = fields == .all ? 1 : BenchRequests.indexedFields
            templates.append(
                (0..<choices).map { Self.template(requests, collection, number, fields, field: $0, &random) })
            number = number * 10 + 9
        }
        self.templates = templates
        self.random = random
    }

    private static func template(
        _ requests: BenchRequests, _ collection: String, _ number: Int, _ fields: Workload.CommitFields, field: Int,
        _ random: inout SeededRandom
    ) -> Template {
        let values = (0..<(fields == .all ? BenchRequests.changedFields : 1)).map { _ in BenchRequests.value(&random) }
        let message = requests.commit(collection, number, fields, field: field, values)
        guard let name = message.firstRange(of: Array(requests.name(collection, number).utf8)) else {
            preconditionFailure("a commit without its document's name")
        }
        let offsets = values.map { value in
            guard let found = message.firstRange(of: varint(value)) else {
                preconditionFailure("a commit without its values")
            }
            return found.lowerBound
        }
        return Template(message, numberEnd: name.upperBound, values: offsets)
    }

    /// Bytes of a value's encoding: see `BenchRequests.value`.
    private static let valueBytes = 9

    private static func varint(_ value: Int64) -> [UInt8] {
        (0..<valueBytes).map { UInt8(truncatingIfNeeded: value >> (7 * $0)) & 0x7F | ($0 < valueBytes - 1 ? 0x80 : 0) }
    }

    func next(_ number: Int) -> UnsafeBufferPointer<UInt8> {
        var document = Int(random.next() % UInt64(documents))
        var digits = 1
        var limit = 10
        while document >= limit {
            digits += 1
            limit *= 10
        }
        let choices = templates[digits - 1]
        let template = choices.count == 1 ? choices[0] : choices[Int(random.next() % UInt64(choices.count))]
        let bytes = template.bytes
        for digit in 1...digits {
            bytes[template.numberEnd - digit] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: document % 10)
            document /= 10
        }
        for start in template.values {
            var value = UInt64(BenchRequests.value(&random))
            for offset in start..<start + Self.valueBytes - 1 {
                bytes[offset] = UInt8(truncatingIfNeeded: value) | 0x80
                value >>= 7
            }
            bytes[start + Self.valueBytes - 1] = UInt8(truncatingIfNeeded: value)
        }
        return UnsafeBufferPointer(bytes)
    }
}
