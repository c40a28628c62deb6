import HearthModel

/// What stands in a local document where the server will set its time: a map with members that no user can write.
///
/// It sorts after all timestamps, by its local write time. Users never see it: reads turn it into null, into the local
/// write time or into the previous value, as they ask for.
package struct PendingServerTimestamp: Sendable {
    static let typeKey = "__type__"
    static let typeName = "server_timestamp"
    static let localWriteTimeKey = "__local_write_time__"
    static let previousValueKey = "__previous_value__"

    package var localWriteTime: Timestamp
    /// The field's value before the write; never a pending timestamp itself.
    package var previousValue: Value?

    /// - Parameter previousValue: of one that is pending itself, its own previous value is taken: they never nest.
    package init(localWriteTime: Timestamp, previousValue: Value?) {
        self.localWriteTime = localWriteTime
        if let previousValue, let pending = Self(previousValue) {
            self.previousValue = pending.previousValue
        } else {
            self.previousValue = previousValue
        }
    }

    /// nil when the value is something else.
    package init?(_ value: Value) {
        guard case .map(let map) = value, Self.isPending(map),
            case .timestamp(let time)? = map[Self.localWriteTimeKey]
        else { return nil }
        localWriteTime = time
        previousValue = map[Self.previousValueKey]
    }

    package static func isPending(_ value: Value) -> Bool {
        if case .map(let map) = value { isPending(map) } else { false }
    }

    /// The members sort as local write time, previous value, type: the last one tells.
    static func isPending(_ map: MapValue) -> Bool {
        guard (2...3).contains(map.count), let last = map.fields.last, UTF8Order.equal(last.name, typeKey),
            case .string(let type) = last.value
        else { return false }
        return UTF8Order.equal(type, typeName)
    }

    /// As it stands in a document.
    package var value: Value {
        var fields = [MapValue.Field(name: Self.localWriteTimeKey, value: .timestamp(localWriteTime))]
        if let previousValue { fields.append(MapValue.Field(name: Self.previousValueKey, value: previousValue)) }
        fields.append(MapValue.Field(name: Self.typeKey, value: .string(Self.typeName)))
        return .map(MapValue(sorted: fields))
    }
}
