import HearthModel

/// The value of a field in a local document until the server sets its time: a map with members that no user can write.
///
/// It sorts after all timestamps, by its local write time. Users never see it: reads convert it to null, to the local
/// write time or to the previous value, as requested.
package struct PendingServerTimestamp: Sendable {
    static let typeKey = "__type__"
    static let typeName = "server_timestamp"
    static let localWriteTimeKey = "__local_write_time__"
    static let previousValueKey = "__previous_value__"

    package var localWriteTime: Timestamp
    /// The field's value before the write; never a pending timestamp itself.
    package var previousValue: Value?

    /// - Parameter previousValue: if it is itself pending, its previous value is used: pending timestamps never nest.
    package init(localWriteTime: Timestamp, previousValue: Value?) {
        self.localWriteTime = localWriteTime
        if let previousValue, let pending = Self(previousValue) {
            self.previousValue = pending.previousValue
        } else {
            self.previousValue = previousValue
        }
    }

    /// nil when the value is not a pending server timestamp.
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

    /// The members sort as local write time, previous value, type. The last one identifies the kind of map.
    static func isPending(_ map: MapValue) -> Bool {
        guard (2...3).contains(map.count), let last = map.fields.last, UTF8Order.equal(last.name, typeKey),
            case .string(let type) = last.value
        else { return false }
        return UTF8Order.equal(type, typeName)
    }

    /// The value to store in a document.
    package var value: Value {
        var fields = [MapValue.Field(name: Self.localWriteTimeKey, value: .timestamp(localWriteTime))]
        if let previousValue { fields.append(MapValue.Field(name: Self.previousValueKey, value: previousValue)) }
        fields.append(MapValue.Field(name: Self.typeKey, value: .string(Self.typeName)))
        return .map(MapValue(sorted: fields))
    }
}
