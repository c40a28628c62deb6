/// A location on Earth, in degrees. Source: google.type.LatLng.
package struct GeoPoint: Hashable, Sendable {
    package var latitude: Double
    package var longitude: Double

    @inlinable
    package init(latitude: Double, longitude: Double) {
        self.latitude = latitude
        self.longitude = longitude
    }
}
