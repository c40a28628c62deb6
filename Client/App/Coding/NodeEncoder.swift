internal import Foundation

/// Encodes into one node.
struct NodeEncoder: Swift.Encoder {
    let node: EncodingNode
    let options: EncodingOptions
    let codingPath: [any CodingKey]

    var userInfo: [CodingUserInfoKey: Any] { options.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(NodeKeyedContainer<Key>(node: node, options: options, codingPath: codingPath))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        NodeUnkeyedContainer(node: node, options: options, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        NodeSingleContainer(node: node, options: options, codingPath: codingPath)
    }
}

private struct NodeKeyedContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let node: EncodingNode
    let options: EncodingOptions
    let codingPath: [any CodingKey]

    init(node: EncodingNode, options: EncodingOptions, codingPath: [any CodingKey]) {
        self.node = node
        self.options = options
        self.codingPath = codingPath
        switch node.content {
        case .nothing: node.content = .map([:])
        case .map: break
        case .value, .array: preconditionFailure("A value asked for two kinds of containers at \(codingPath).")
        }
    }

    private func set(_ child: EncodingNode, _ name: String) {
        guard case .map(var members) = node.content else { return }
        node.content = .nothing
        members[name] = child
        node.content = .map(members)
    }

    private func set(_ value: Any, _ key: any CodingKey) {
        let child = EncodingNode()
        child.content = .value(value)
        set(child, options.name(of: key, at: codingPath))
    }

    private func child(_ key: any CodingKey) -> EncodingNode {
        let child = EncodingNode()
        set(child, options.name(of: key, at: codingPath))
        return child
    }

    func encodeNil(forKey key: Key) throws { set(NSNull(), key) }
    func encode(_ value: Bool, forKey key: Key) throws { set(NSNumber(value: value), key) }
    func encode(_ value: String, forKey key: Key) throws { set(value, key) }
    func encode(_ value: Int, forKey key: Key) throws { set(NSNumber(value: value), key) }
    func encode(_ value: Int8, forKey key: Key) throws { set(NSNumber(value: value), key) }
    func encode(_ value: Int16, forKey key: Key) throws { set(NSNumber(value: value), key) }
    func encode(_ value: Int32, forKey key: Key) throws { set(NSNumber(value: value), key) }
    func encode(_ value: Int64, forKey key: Key) throws { set(NSNumber(value: value), key) }
    func encode(_ value: UInt, forKey key: Key) throws { set(NSNumber(value: value), key) }
    func encode(_ value: UInt8, forKey key: Key) throws { set(NSNumber(value: value), key) }
    func encode(_ value: UInt16, forKey key: Key) throws { set(NSNumber(value: value), key) }
    func encode(_ value: UInt32, forKey key: Key) throws { set(NSNumber(value: value), key) }
    func encode(_ value: UInt64, forKey key: Key) throws { set(NSNumber(value: value), key) }
    func encode(_ value: Float, forKey key: Key) throws { try encode(Double(value), forKey: key) }
    func encode(_ value: Double, forKey key: Key) throws {
        set(try options.number(value, at: codingPath + [key]), key)
    }

    func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
        if value is any OmittedProperty { return }
        let child = EncodingNode()
        try options.encode(value, into: child, at: codingPath + [key])
        set(child, options.name(of: key, at: codingPath))
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy keyType: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        NodeEncoder(node: child(key), options: options, codingPath: codingPath + [key]).container(keyedBy: keyType)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        NodeEncoder(node: child(key), options: options, codingPath: codingPath + [key]).unkeyedContainer()
    }

    func superEncoder() -> any Swift.Encoder {
        NodeEncoder(node: child(PlainKey.super), options: options, codingPath: codingPath + [PlainKey.super])
    }

    func superEncoder(forKey key: Key) -> any Swift.Encoder {
        NodeEncoder(node: child(key), options: options, codingPath: codingPath + [key])
    }
}

private struct NodeUnkeyedContainer: UnkeyedEncodingContainer {
    let node: EncodingNode
    let options: EncodingOptions
    let codingPath: [any CodingKey]

    init(node: EncodingNode, options: EncodingOptions, codingPath: [any CodingKey]) {
        self.node = node
        self.options = options
        self.codingPath = codingPath
        switch node.content {
        case .nothing: node.content = .array([])
        case .array: break
        case .value, .map: preconditionFailure("A value asked for two kinds of containers at \(codingPath).")
        }
    }

    var count: Int {
        if case .array(let elements) = node.content { elements.count } else { 0 }
    }

    private var path: [any CodingKey] { codingPath + [PlainKey(intValue: count)] }

    private func add(_ child: EncodingNode) {
        guard case .array(var elements) = node.content else { return }
        node.content = .nothing
        elements.append(child)
        node.content = .array(elements)
    }

    private func add(_ value: Any) {
        let child = EncodingNode()
        child.content = .value(value)
        add(child)
    }

    private func nested() -> NodeEncoder {
        let child = EncodingNode()
        let encoder = NodeEncoder(node: child, options: options, codingPath: path)
        add(child)
        return encoder
    }

    func encodeNil() throws { add(NSNull()) }
    func encode(_ value: Bool) throws { add(NSNumber(value: value) as Any) }
    func encode(_ value: String) throws { add(value as Any) }
    func encode(_ value: Int) throws { add(NSNumber(value: value) as Any) }
    func encode(_ value: Int8) throws { add(NSNumber(value: value) as Any) }
    func encode(_ value: Int16) throws { add(NSNumber(value: value) as Any) }
    func encode(_ value: Int32) throws { add(NSNumber(value: value) as Any) }
    func encode(_ value: Int64) throws { add(NSNumber(value: value) as Any) }
    func encode(_ value: UInt) throws { add(NSNumber(value: value) as Any) }
    func encode(_ value: UInt8) throws { add(NSNumber(value: value) as Any) }
    func encode(_ value: UInt16) throws { add(NSNumber(value: value) as Any) }
    func encode(_ value: UInt32) throws { add(NSNumber(value: value) as Any) }
    func encode(_ value: UInt64) throws { add(NSNumber(value: value) as Any) }
    func encode(_ value: Float) throws { try encode(Double(value)) }
    func encode(_ value: Double) throws { add(try options.number(value, at: path)) }

    func encode<T: Encodable>(_ value: T) throws {
        let child = EncodingNode()
        try options.encode(value, into: child, at: path)
        add(child)
    }

    func nestedContainer<Nested: CodingKey>(keyedBy keyType: Nested.Type) -> KeyedEncodingContainer<Nested> {
        nested().container(keyedBy: keyType)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { nested().unkeyedContainer() }

    func superEncoder() -> any Swift.Encoder { nested() }
}

private struct NodeSingleContainer: SingleValueEncodingContainer {
    let node: EncodingNode
    let options: EncodingOptions
    let codingPath: [any CodingKey]

    func encodeNil() throws { node.content = .value(NSNull()) }
    func encode(_ value: Bool) throws { node.content = .value(NSNumber(value: value)) }
    func encode(_ value: String) throws { node.content = .value(value) }
    func encode(_ value: Int) throws { node.content = .value(NSNumber(value: value)) }
    func encode(_ value: Int8) throws { node.content = .value(NSNumber(value: value)) }
    func encode(_ value: Int16) throws { node.content = .value(NSNumber(value: value)) }
    func encode(_ value: Int32) throws { node.content = .value(NSNumber(value: value)) }
    func encode(_ value: Int64) throws { node.content = .value(NSNumber(value: value)) }
    func encode(_ value: UInt) throws { node.content = .value(NSNumber(value: value)) }
    func encode(_ value: UInt8) throws { node.content = .value(NSNumber(value: value)) }
    func encode(_ value: UInt16) throws { node.content = .value(NSNumber(value: value)) }
    func encode(_ value: UInt32) throws { node.content = .value(NSNumber(value: value)) }
    func encode(_ value: UInt64) throws { node.content = .value(NSNumber(value: value)) }
    func encode(_ value: Float) throws { try encode(Double(value)) }
    func encode(_ value: Double) throws { node.content = .value(try options.number(value, at: codingPath)) }
    func encode<T: Encodable>(_ value: T) throws { try options.encode(value, into: node, at: codingPath) }
}
