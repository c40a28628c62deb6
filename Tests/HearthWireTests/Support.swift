import HearthModel
import HearthTestSupport
import HearthWire

/// Random values of every type; limit values are more frequent than by chance.
struct ValueGenerator {
    var random: SeededGenerator

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    mutating func value(depth: Int = 3) -> Value {
        switch Int.random(in: 0..<(depth > 0 ? 13 : 10), using: &random) {
        case 0: .null
        case 1: .boolean(.random(using: &random))
        case 2: .integer(integer())
        case 3, 4: .double(double())
        case 5: .timestamp(time())
        case 6, 7: .string(string())
        case 8: .bytes((0..<Int.random(in: 0...9, using: &random)).map { _ in .random(in: 0...255, using: &random) })
        case 9: .geoPoint(GeoPoint(latitude: .random(in: -90...90, using: &random), longitude: 0))
        case 10: .array((0..<Int.random(in: 0...4, using: &random)).map { _ in value(depth: depth - 1) })
        case 11: .vector((0..<Int.random(in: 0...5, using: &random)).map { _ in double() })
        default: .map(map(depth: depth - 1))
        }
    }

    mutating func map(depth: Int = 3) -> MapValue {
        MapValue(
            (0..<Int.random(in: 0...5, using: &random)).map { _ in .init(name: name(), value: value(depth: depth)) })
    }

    mutating func integer() -> Int64 {
        let edges: [Int64] = [0, 1, -1, .max, .min, 127, 128, 1 << 53]
        return Bool.random(using: &random)
            ? edges.randomElement(using: &random)! : .random(in: .min ... .max, using: &random)
    }

    mutating func double() -> Double {
        let edges = [
            0, -0.0, 1, -1.5, .nan, .infinity, -.infinity, .leastNonzeroMagnitude, 1.7976931348623157e308, 0.1, 1e21,
            1e-7,
        ]
        if Bool.random(using: &random) { return edges.randomElement(using: &random)! }
        let number = Double(bitPattern: random.next())
        return number.isNaN ? .nan : number
    }

    mutating func time() -> Timestamp {
        let range = Timestamp.secondsMin * 1_000_000...(Timestamp.secondsMax * 1_000_000 + 999_999)
        return Timestamp(microseconds: .random(in: range, using: &random))
    }

    mutating func string() -> String {
        let pieces = [
            "a", "é", "e\u{301}", "\"", "\\", "\n", "\u{0}", "\u{1f}", "😀", "/", "\u{7f}", "\u{2028}",
            "long enough to leave",
        ]
        return (0..<Int.random(in: 0...5, using: &random)).map { _ in pieces.randomElement(using: &random)! }.joined()
    }

    mutating func name() -> String {
        ["a", "b", "a.b", "é", "e\u{301}", "`", "__type__x", "value", "zz", "A"].randomElement(using: &random)!
    }
}

/// The message of the `INVALID_ARGUMENT` that a body throws; nil when it does not throw.
func refusal<T>(_ body: () throws(Status) -> T) -> String? {
    do throws(Status) {
        _ = try body()
        return nil
    } catch {
        return error.code == .invalidArgument ? error.message : "\(error)"
    }
}

func bytes(hex: String) -> [UInt8] {
    let digits = Array(hex.utf8).map { $0 < 0x3a ? $0 - 0x30 : $0 - 0x57 }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

func string(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

/// The types in golden data, by name.
let messageTypes: [String: any WireMessage.Type] = [
    "DocumentMessage": DocumentMessage.self, "CommitRequest": CommitRequest.self, "CommitResponse": CommitResponse.self,
    "RunQueryRequest": RunQueryRequest.self, "RunQueryResponse": RunQueryResponse.self,
    "BatchGetDocumentsRequest": BatchGetDocumentsRequest.self,
    "BatchGetDocumentsResponse": BatchGetDocumentsResponse.self, "ListDocumentsRequest": ListDocumentsRequest.self,
    "RunAggregationQueryRequest": RunAggregationQueryRequest.self,
    "RunAggregationQueryResponse": RunAggregationQueryResponse.self,
    "PartitionQueryResponse": PartitionQueryResponse.self, "WriteRequest": WriteRequest.self,
    "WriteResponse": WriteResponse.self, "ListenRequest": ListenRequest.self, "ListenResponse": ListenResponse.self,
    "BatchWriteResponse": BatchWriteResponse.self, "ListCollectionIdsResponse": ListCollectionIdsResponse.self,
    "BundleElementMessage": BundleElementMessage.self, "IndexMessage": IndexMessage.self,
    "FieldMessage": FieldMessage.self, "DatabaseMessage": DatabaseMessage.self,
    "UpdateFieldRequest": UpdateFieldRequest.self, "OperationMessage": OperationMessage.self,
]
