import HearthModel

/// The bounds of this module, and of those that build upon it. One marked "ours" guards memory or time and is not part of the
/// service's contract.
extension Limits {
    // MARK: Bundles; bounds of ours

    /// One element of a bundle. A document of 1 MiB that holds nothing but small values takes about 45 MiB as JSON.
    package static let bundleElementSizeBytesMax = 64 << 20
    /// Digits of the length in front of an element.
    package static let bundlePrefixDigitsMax = 15
}
