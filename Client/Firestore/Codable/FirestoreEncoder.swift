internal import Foundation

extension Firestore {
    /// Makes a document's data of an `Encodable`. `Timestamp`, `GeoPoint`, `VectorValue`, `DocumentReference` and
    /// `FieldValue` go through as they are.
    public class Encoder {
        public var dateEncodingStrategy = FirebaseDataEncoder.DateEncodingStrategy.timestamp
        public var dataEncodingStrategy = FirebaseDataEncoder.DataEncodingStrategy.blob
        public var nonConformingFloatEncodingStrategy = FirebaseDataEncoder.NonConformingFloatEncodingStrategy.throw
        public var keyEncodingStrategy = FirebaseDataEncoder.KeyEncodingStrategy.useDefaultKeys
        public var userInfo: [CodingUserInfoKey: Any] = [:]

        public init() {}

        /// - Throws: `EncodingError.invalidValue` unless the value encodes itself as an object.
        public func encode<T: Encodable>(_ value: T) throws -> [String: Any] {
            let coding = EncodingOptions(
                date: dateEncodingStrategy, data: dataEncodingStrategy, float: nonConformingFloatEncodingStrategy,
                key: keyEncodingStrategy, userInfo: userInfo)
            let node = EncodingNode()
            try coding.encode(value, into: node, at: [])
            guard let map = node.resolved as? [String: Any] else {
                throw EncodingError.invalidValue(
                    value,
                    EncodingError.Context(
                        codingPath: [],
                        debugDescription: "Top-level \(T.self) is not allowed: a document's data must be an object."))
            }
            return map
        }
    }
}

/// One place of the data in the making.
final class EncodingNode {
    enum Content {
        /// Nothing was encoded: an object without members.
        case nothing
        case value(Any)
        case map([String: EncodingNode])
        case array([EncodingNode])
    }

    var content = Content.nothing

    var resolved: Any {
        switch content {
        case .nothing: [String: Any]()
        case .value(let value): value
        case .map(let members): members.mapValues(\.resolved)
        case .array(let elements): elements.map(\.resolved)
        }
    }
}

/// The encoder's choices, at work.
final class EncodingOptions {
    let date: FirebaseDataEncoder.DateEncodingStrategy
    let data: FirebaseDataEncoder.DataEncodingStrategy
    let float: FirebaseDataEncoder.NonConformingFloatEncodingStrategy
    let key: FirebaseDataEncoder.KeyEncodingStrategy
    let userInfo: [CodingUserInfoKey: Any]

    init(
        date: FirebaseDataEncoder.DateEncodingStrategy, data: FirebaseDataEncoder.DataEncodingStrategy,
        float: FirebaseDataEncoder.NonConformingFloatEncodingStrategy, key: FirebaseDataEncoder.KeyEncodingStrategy,
        userInfo: [CodingUserInfoKey: Any]
    ) {
        self.date = date
        self.data = data
        self.float = float
        self.key = key
        self.userInfo = userInfo
    }

    func encode<T: Encodable>(_ value: T, into node: EncodingNode, at path: [any CodingKey]) throws {
        switch value {
        case is Timestamp, is GeoPoint, is VectorValue, is DocumentReference, is FieldValue:
            node.content = .value(value)
        case let date as Date: try encode(date, into: node, at: path)
        case let data as Data: try encode(data, into: node, at: path)
        case let url as URL: node.content = .value(url.absoluteString)
        case let decimal as Decimal:
            node.content = .value(NSNumber(value: NSDecimalNumber(decimal: decimal).doubleValue))
        case let map as any StringKeyedEncodable:
            // Names that are data, not code, are kept as they are.
            var members: [String: EncodingNode] = [:]
            for (name, member) in map.members {
                let child = EncodingNode()
                try encode(member, into: child, at: path + [PlainKey(stringValue: name)])
                members[name] = child
            }
            node.content = .map(members)
        default: try value.encode(to: NodeEncoder(node: node, options: self, codingPath: path))
        }
    }

    private func encode(_ date: Date, into node: EncodingNode, at path: [any CodingKey]) throws {
        let encoder = NodeEncoder(node: node, options: self, codingPath: path)
        switch self.date {
        case .deferredToDate: try date.encode(to: encoder)
        case .secondsSince1970: node.content = .value(NSNumber(value: date.timeIntervalSince1970))
        case .millisecondsSince1970: node.content = .value(NSNumber(value: date.timeIntervalSince1970 * 1000))
        case .iso8601: node.content = .value(ISO8601DateFormatter().string(from: date))
        case .formatted(let formatter): node.content = .value(formatter.string(from: date))
        case .custom(let encode): try encode(date, encoder)
        }
    }

    private func encode(_ data: Data, into node: EncodingNode, at path: [any CodingKey]) throws {
        let encoder = NodeEncoder(node: node, options: self, codingPath: path)
        switch self.data {
        case .deferredToData: try data.encode(to: encoder)
        case .base64: node.content = .value(data.base64EncodedString())
        case .blob: node.content = .value(data)
        case .custom(let encode): try encode(data, encoder)
        }
    }

    func number(_ value: Double, at path: [any CodingKey]) throws -> Any {
        if value.isFinite { return NSNumber(value: value) }
        switch float {
        case .convertToString(let positiveInfinity, let negativeInfinity, let nan):
            return value.isNaN ? nan : value > 0 ? positiveInfinity : negativeInfinity
        case .throw:
            throw EncodingError.invalidValue(
                value,
                EncodingError.Context(
                    codingPath: path,
                    debugDescription: "\(value) needs a nonConformingFloatEncodingStrategy that converts to strings."))
        }
    }

    func name(of key: any CodingKey, at path: [any CodingKey]) -> String {
        switch self.key {
        case .useDefaultKeys: key.stringValue
        case .convertToSnakeCase: SnakeCase.from(camel: key.stringValue)
        case .custom(let convert): convert(path + [key]).stringValue
        }
    }
}

/// A dictionary whose keys are texts.
protocol StringKeyedEncodable {
    var members: [(String, any Encodable)] { get }
}

extension Dictionary: StringKeyedEncodable where Key == String, Value: Encodable {
    var members: [(String, any Encodable)] { map { ($0.key, $0.value) } }
}
