internal import Foundation
internal import HearthModel

/// A geographical point, in degrees.
public final class GeoPoint: Sendable {
    /// The latitude in degrees: -90 to 90.
    public let latitude: Double
    /// The longitude in degrees: -180 to 180.
    public let longitude: Double

    /// The program ends for values out of range.
    /// - Parameters:
    ///   - latitude: in degrees, -90 to 90.
    ///   - longitude: in degrees, -180 to 180.
    public init(latitude: Double, longitude: Double) {
        orTrap { () throws(Status) in try Self.validate(latitude, longitude) }
        self.latitude = latitude
        self.longitude = longitude
    }

    public required init(from decoder: any Swift.Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let latitude = try container.decode(Double.self, forKey: .latitude)
        let longitude = try container.decode(Double.self, forKey: .longitude)
        do {
            try Self.validate(latitude, longitude)
        } catch {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: decoder.codingPath, debugDescription: error.message))
        }
        self.latitude = latitude
        self.longitude = longitude
    }

    static func validate(_ latitude: Double, _ longitude: Double) throws(Status) {
        guard latitude >= -90, latitude <= 90 else {
            throw .invalidArgument("GeoPoint latitude must be between -90 and 90, but was \(latitude).")
        }
        guard longitude >= -180, longitude <= 180 else {
            throw .invalidArgument("GeoPoint longitude must be between -180 and 180, but was \(longitude).")
        }
    }
}

extension GeoPoint: Hashable, Codable, CustomStringConvertible {
    private enum CodingKeys: String, CodingKey { case latitude, longitude }

    public static func == (left: GeoPoint, right: GeoPoint) -> Bool {
        left.latitude == right.latitude && left.longitude == right.longitude
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(latitude)
        hasher.combine(longitude)
    }

    public func encode(to encoder: any Swift.Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(latitude, forKey: .latitude)
        try container.encode(longitude, forKey: .longitude)
    }

    public var description: String { "GeoPoint(latitude: \(latitude), longitude: \(longitude))" }
}
