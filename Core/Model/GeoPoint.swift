/// A location on Earth, in degrees. Source: google.type.LatLng.
@usableFromInline package struct GeoPoint: Hashable, Sendable {
    @usableFromInline package var latitude: Double
    @usableFromInline package var longitude: Double

    @inlinable
    package init(latitude: Double, longitude: Double) {
        self.latitude = latitude
        self.longitude = longitude
    }
}
