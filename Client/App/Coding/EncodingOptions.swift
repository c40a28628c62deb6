internal import Foundation

/// The encoder's strategies.
package final class EncodingOptions {
    let date: FirebaseDataEncoder.DateEncodingStrategy
    let data: FirebaseDataEncoder.DataEncodingStrategy
    let float: FirebaseDataEncoder.NonConformingFloatEncodingStrategy
    let key: FirebaseDataEncoder.KeyEncodingStrategy
    let userInfo: [CodingUserInfoKey: Any]
    /// Values that are used unchanged instead of encoded.
    let isPassedThrough: (Any) -> Bool

    package init(
        date: FirebaseDataEncoder.DateEncodingStrategy, data: FirebaseDataEncoder.DataEncodingStrategy,
        float: FirebaseDataEncoder.NonConformingFloatEncodingStrategy, key: FirebaseDataEncoder.KeyEncodingStrategy,
        userInfo: [CodingUserInfoKey: Any], isPassedThrough: @escaping (Any) -> Bool
    ) {
        self.date = date
        self.data = data
        self.float = float
        self.key = key
        self.userInfo = userInfo
        self.isPassedThrough = isPassedThrough
    }

    package func encode<T: Encodable>(_ value: T, into node: EncodingNode, at path: [any CodingKey]) throws {
        switch value {
        case _ where isPassedThrough(value): node.content = .value(value)
        case let date as Date: try encode(date, into: node, at: path)
        case let data as Data: try encode(data, into: node, at: path)
        case let url as URL: node.content = .value(url.absoluteString)
        case let decimal as Decimal:
            node.content = .value(NSNumber(value: NSDecimalNumber(decimal: decimal).doubleValue))
        case let map as any StringKeyedEncodable:
            // The keys of a dictionary are data, so they are not converted.
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

/// A dictionary with string keys.
protocol StringKeyedEncodable {
    var members: [(String, any Encodable)] { get }
}

extension Dictionary: StringKeyedEncodable where Key == String, Value: Encodable {
    var members: [(String, any Encodable)] { map { ($0.key, $0.value) } }
}
