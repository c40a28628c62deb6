internal import Foundation

/// Decodes one value of a document's data.
struct ValueDecoder: Swift.Decoder {
    let value: Any
    let options: DecodingOptions
    let codingPath: [any CodingKey]

    var userInfo: [CodingUserInfoKey: Any] { options.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard let map = value as? [String: Any] else {
            throw options.mismatch([String: Any].self, value, codingPath)
        }
        return KeyedDecodingContainer(
            ValueKeyedContainer<Key>(map: options.named(map, at: codingPath), options: options, codingPath: codingPath))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard let elements = value as? [Any] else { throw options.mismatch([Any].self, value, codingPath) }
        return ValueUnkeyedContainer(elements: elements, options: options, codingPath: codingPath)
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        ValueSingleContainer(value: value, options: options, codingPath: codingPath)
    }
}

private struct ValueKeyedContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let map: [String: Any]
    let options: DecodingOptions
    let codingPath: [any CodingKey]

    var allKeys: [Key] { map.keys.compactMap { Key(stringValue: $0) } }

    func contains(_ key: Key) -> Bool { map[key.stringValue] != nil }

    private func value(_ key: any CodingKey) throws -> Any {
        guard let value = map[key.stringValue] else {
            throw DecodingError.keyNotFound(
                key,
                DecodingError.Context(
                    codingPath: codingPath, debugDescription: "There is no field '\(key.stringValue)'."))
        }
        return value
    }

    private func nested(_ key: any CodingKey) throws -> ValueDecoder {
        ValueDecoder(value: try value(key), options: options, codingPath: codingPath + [key])
    }

    func decodeNil(forKey key: Key) throws -> Bool { options.isNull(try value(key)) }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
        try options.boolean(try value(key), codingPath + [key])
    }
    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        try options.string(try value(key), codingPath + [key])
    }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
        try options.double(try value(key), codingPath + [key])
    }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float {
        try options.float(try value(key), codingPath + [key])
    }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int {
        try options.integer(try value(key), codingPath + [key])
    }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 {
        try options.integer(try value(key), codingPath + [key])
    }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 {
        try options.integer(try value(key), codingPath + [key])
    }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 {
        try options.integer(try value(key), codingPath + [key])
    }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
        try options.integer(try value(key), codingPath + [key])
    }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt {
        try options.integer(try value(key), codingPath + [key])
    }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 {
        try options.integer(try value(key), codingPath + [key])
    }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 {
        try options.integer(try value(key), codingPath + [key])
    }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 {
        try options.integer(try value(key), codingPath + [key])
    }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 {
        try options.integer(try value(key), codingPath + [key])
    }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        if type is any OmittedProperty.Type {
            return try T(from: ValueDecoder(value: NSNull(), options: options, codingPath: codingPath + [key]))
        }
        return try options.decode(type, from: try value(key), at: codingPath + [key])
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> { try nested(key).container(keyedBy: type) }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try nested(key).unkeyedContainer()
    }

    func superDecoder() throws -> any Swift.Decoder {
        ValueDecoder(
            value: map[PlainKey.super.stringValue] ?? NSNull(), options: options,
            codingPath: codingPath + [PlainKey.super])
    }

    func superDecoder(forKey key: Key) throws -> any Swift.Decoder {
        ValueDecoder(value: map[key.stringValue] ?? NSNull(), options: options, codingPath: codingPath + [key])
    }
}

private struct ValueUnkeyedContainer: UnkeyedDecodingContainer {
    let elements: [Any]
    let options: DecodingOptions
    let codingPath: [any CodingKey]
    private(set) var currentIndex = 0

    init(elements: [Any], options: DecodingOptions, codingPath: [any CodingKey]) {
        self.elements = elements
        self.options = options
        self.codingPath = codingPath
    }

    var count: Int? { elements.count }
    var isAtEnd: Bool { currentIndex == elements.count }
    private var path: [any CodingKey] { codingPath + [PlainKey(intValue: currentIndex)] }

    private func element<T>(_ type: T.Type) throws -> Any {
        if isAtEnd {
            throw DecodingError.valueNotFound(
                type, DecodingError.Context(codingPath: path, debugDescription: "The array has no more elements."))
        }
        return elements[currentIndex]
    }

    private mutating func advance<T>(_ decode: (DecodingOptions, Any, [any CodingKey]) throws -> T) throws -> T {
        let result = try decode(options, try element(T.self), path)
        currentIndex += 1
        return result
    }

    mutating func decodeNil() throws -> Bool {
        let isNull = options.isNull(try element(NSNull.self))
        if isNull { currentIndex += 1 }
        return isNull
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try advance { try $0.boolean($1, $2) } }
    mutating func decode(_ type: String.Type) throws -> String { try advance { try $0.string($1, $2) } }
    mutating func decode(_ type: Double.Type) throws -> Double { try advance { try $0.double($1, $2) } }
    mutating func decode(_ type: Float.Type) throws -> Float { try advance { try $0.float($1, $2) } }
    mutating func decode(_ type: Int.Type) throws -> Int { try advance { try $0.integer($1, $2) } }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try advance { try $0.integer($1, $2) } }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try advance { try $0.integer($1, $2) } }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try advance { try $0.integer($1, $2) } }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try advance { try $0.integer($1, $2) } }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try advance { try $0.integer($1, $2) } }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try advance { try $0.integer($1, $2) } }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try advance { try $0.integer($1, $2) } }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try advance { try $0.integer($1, $2) } }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try advance { try $0.integer($1, $2) } }
    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try advance { try $0.decode(type, from: $1, at: $2) }
    }

    private mutating func nested() throws -> ValueDecoder {
        try advance { ValueDecoder(value: $1, options: $0, codingPath: $2) }
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> { try nested().container(keyedBy: type) }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { try nested().unkeyedContainer() }

    mutating func superDecoder() throws -> any Swift.Decoder { try nested() }
}

private struct ValueSingleContainer: SingleValueDecodingContainer {
    let value: Any
    let options: DecodingOptions
    let codingPath: [any CodingKey]

    func decodeNil() -> Bool { options.isNull(value) }
    func decode(_ type: Bool.Type) throws -> Bool { try options.boolean(value, codingPath) }
    func decode(_ type: String.Type) throws -> String { try options.string(value, codingPath) }
    func decode(_ type: Double.Type) throws -> Double { try options.double(value, codingPath) }
    func decode(_ type: Float.Type) throws -> Float { try options.float(value, codingPath) }
    func decode(_ type: Int.Type) throws -> Int { try options.integer(value, codingPath) }
    func decode(_ type: Int8.Type) throws -> Int8 { try options.integer(value, codingPath) }
    func decode(_ type: Int16.Type) throws -> Int16 { try options.integer(value, codingPath) }
    func decode(_ type: Int32.Type) throws -> Int32 { try options.integer(value, codingPath) }
    func decode(_ type: Int64.Type) throws -> Int64 { try options.integer(value, codingPath) }
    func decode(_ type: UInt.Type) throws -> UInt { try options.integer(value, codingPath) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try options.integer(value, codingPath) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try options.integer(value, codingPath) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try options.integer(value, codingPath) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try options.integer(value, codingPath) }
    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try options.decode(type, from: value, at: codingPath)
    }
}
