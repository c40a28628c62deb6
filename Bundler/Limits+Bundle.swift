import HearthModel

/// The bounds of this module and of the modules that build upon it. A bound marked "ours" guards memory or time and is
/// not part of the service's contract.
extension Limits {
    // MARK: Bundles; our own bounds

    /// One element of a bundle. A document of 1 MiB that contains only small values takes about 45 MiB as JSON.
    package static let bundleElementSizeBytesMax = 64 << 20
    /// Digits of the length before an element.
    static let bundlePrefixDigitsMax = 15
}
