import HearthModel
import HearthWire

/// The records of a managed export: EntityProto, a proto2 message of the package `storage_onestore_v3`, in the form
/// that Firestore and its emulator write. Source: exports of both; docs/reference/exports.md has the table.
enum EntityFormat {
    /// What a property's value means beyond its type.
    enum Meaning {
        static let timestamp: UInt64 = 7
        static let geoPoint: UInt64 = 9
        static let bytes: UInt64 = 14
        static let blob: UInt64 = 16
        static let map: UInt64 = 19
        static let emptyArray: UInt64 = 24
        static let vector: UInt64 = 31
        /// Those that only databases in Datastore mode have: the value counts.
        static let legacy: Set<UInt64> = [1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 13, 15, 17, 18]
    }

    /// Tags of EntityProto.
    enum Entity {
        static let key: UInt32 = 13 << 3 | 2
        static let property: UInt32 = 14 << 3 | 2
        static let rawProperty: UInt32 = 15 << 3 | 2
        static let group: UInt32 = 16 << 3 | 2
    }

    /// Tags of Property.
    enum Property {
        static let meaning: UInt32 = 1 << 3
        static let name: UInt32 = 3 << 3 | 2
        static let multiple: UInt32 = 4 << 3
        static let value: UInt32 = 5 << 3 | 2
    }

    /// Tags of PropertyValue.
    enum Value {
        static let integer: UInt32 = 1 << 3
        static let boolean: UInt32 = 2 << 3
        static let string: UInt32 = 3 << 3 | 2
        static let double: UInt32 = 4 << 3 | 1
        static let point: UInt32 = 5 << 3 | 3
        static let latitude: UInt32 = 6 << 3 | 1
        static let longitude: UInt32 = 7 << 3 | 1
        static let pointEnd: UInt32 = 5 << 3 | 4
        static let user: UInt32 = 8 << 3 | 3
        static let reference: UInt32 = 12 << 3 | 3
        static let referenceEnd: UInt32 = 12 << 3 | 4
    }

    /// Tags of a reference as a value; those of a key have the same numbers, but for the path.
    enum Reference {
        static let app: UInt32 = 13 << 3 | 2
        static let path: UInt32 = 14 << 3 | 2
        static let element: UInt32 = 14 << 3 | 3
        static let elementEnd: UInt32 = 14 << 3 | 4
        static let type: UInt32 = 15 << 3 | 2
        static let id: UInt32 = 16 << 3
        static let name: UInt32 = 17 << 3 | 2
        static let namespace: UInt32 = 20 << 3 | 2
        static let database: UInt32 = 23 << 3 | 2
    }

    /// Tags of an element of a key's path.
    enum Element {
        static let start: UInt32 = 1 << 3 | 3
        static let end: UInt32 = 1 << 3 | 4
        static let type: UInt32 = 2 << 3 | 2
        static let id: UInt32 = 3 << 3
        static let name: UInt32 = 4 << 3 | 2
    }

    /// The empty key before a map's properties, and the empty group behind them.
    static let emptyKey: [UInt8] = [0x6A, 4, 0x6A, 0, 0x72, 0]
    static let emptyGroup: [UInt8] = [0x82, 0x01, 0]
}
