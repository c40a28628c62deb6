internal import HearthModel
internal import HearthSync

// Names for inner types whose names the public API also uses.
typealias ModelFieldPath = HearthModel.FieldPath
typealias ModelFilter = HearthModel.Filter
typealias ModelGeoPoint = HearthModel.GeoPoint
typealias ModelOrder = HearthModel.Query.Order
typealias ModelTimestamp = HearthModel.Timestamp
