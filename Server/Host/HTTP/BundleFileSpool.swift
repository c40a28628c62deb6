import HearthBundle
import HearthModel

/// The documents of a bundle that is being created.
package struct BundleFileSpool: BundleSpool {
    private let file: SpillFile

    package init(folder: String) { file = SpillFile(folder: folder) }

    package mutating func append(_ bytes: [UInt8]) throws(Status) {
        if file.count + Int64(bytes.count) > Limits.bundleSizeBytesMax {
            throw .resourceExhausted("A bundle has at most \(Limits.bundleSizeBytesMax >> 20) MiB.")
        }
        try file.append(bytes)
    }

    package mutating func read(_ range: Range<Int64>) throws(Status) -> [UInt8] { try file.read(range) }
}
