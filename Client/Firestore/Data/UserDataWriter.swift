internal import Foundation
internal import HearthModel
internal import HearthSync

/// Converts the model's values to the user's values.
///
/// Numbers and Booleans become `NSNumber`. On Linux an `Any` that holds an `Int64` does not cast with `as? Int`, but an
/// `NSNumber` casts to every number type of Swift that can represent it, as on Apple platforms.
struct UserDataWriter {
    let firestore: Firestore
    let behavior: ServerTimestampBehavior

    func map(_ map: MapValue) -> [String: Any] {
        var result: [String: Any] = [:]
        result.reserveCapacity(map.count)
        for field in map.fields { result[field.name] = value(field.value) }
        return result
    }

    func value(_ value: Value) -> Any {
        switch value {
        case .null: return NSNull()
        case .boolean(let flag): return NSNumber(value: flag)
        case .integer(let number): return NSNumber(value: number)
        case .double(let number): return NSNumber(value: number)
        case .timestamp(let time): return Timestamp(time)
        case .string(let string): return string
        case .bytes(let bytes): return Data(bytes)
        case .reference(let name): return reference(name)
        case .geoPoint(let point): return GeoPoint(latitude: point.latitude, longitude: point.longitude)
        case .array(let elements): return elements.map { self.value($0) }
        case .vector(let elements): return VectorValue(elements)
        case .map(let map):
            if let pending = PendingServerTimestamp(value) { return self.pending(pending) }
            return self.map(map)
        }
    }

    private func pending(_ pending: PendingServerTimestamp) -> Any {
        switch behavior {
        case .none: NSNull()
        case .estimate: Timestamp(pending.localWriteTime)
        case .previous: pending.previousValue.map { value($0) } ?? NSNull()
        }
    }

    /// A reference into another database cannot be represented by this instance. As in Apple's library it becomes a
    /// reference into this database, with a warning.
    private func reference(_ name: String) -> Any {
        do {
            let resource = try ResourceName(reference: name)
            if resource.database != firestore.databaseName {
                Log.warning(
                    "A document holds a reference into another database, \(name): it is treated as a reference within "
                        + "\(firestore.databaseName).")
            }
            return DocumentReference(firestore: firestore, key: resource.path)
        } catch {
            Log.warning("A document holds a reference that is none: \(error.message)")
            return NSNull()
        }
    }
}
