internal import HearthModel
internal import HearthSync

// The inner side's names that the public API has, too.
typealias ModelFieldPath = HearthModel.FieldPath
typealias ModelFilter = HearthModel.Filter
typealias ModelGeoPoint = HearthModel.GeoPoint
typealias ModelOrder = HearthModel.Query.Order
typealias ModelTimestamp = HearthModel.Timestamp
