import HearthFirestore

// Both the API and the model have these names. The tests use the API's.
typealias FieldPath = HearthFirestore.FieldPath
typealias Filter = HearthFirestore.Filter
typealias GeoPoint = HearthFirestore.GeoPoint
typealias Query = HearthFirestore.Query
typealias Timestamp = HearthFirestore.Timestamp
