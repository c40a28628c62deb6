import HearthModel
import HearthWire

/// The paths of the fields in which two states of a document differ, as `update_mask` of an event names them: a map that
/// both have is descended into, everything else is named as a whole. In the byte order of the paths' string form.
package enum UpdateMask {
    /// - Parameters: fields in wire form (`FieldsCodec`).
    /// - Throws: DATA_LOSS when the bytes are malformed.
    package static func paths(_ before: [UInt8], _ after: [UInt8]) throws(Status) -> [String] {
        var difference = Difference(FieldsReader(before), FieldsReader(after))
        try difference.compare(try difference.before.entries(), try difference.after.entries(), [])
        return difference.paths.sorted { UTF8Order.compare($0, $1) < 0 }
    }

    private struct Difference {
        let before: FieldsReader
        let after: FieldsReader
        var paths: [String] = []

        init(_ before: FieldsReader, _ after: FieldsReader) {
            self.before = before
            self.after = after
        }

        /// Walks over the fields of two maps, which are sorted by their names.
        mutating func compare(
            _ old: [FieldsReader.Entry], _ new: [FieldsReader.Entry], _ parent: [String]
        ) throws(Status) {
            var i = 0
            var j = 0
            while i < old.count || j < new.count {
                let order = i == old.count ? 1 : j == new.count ? -1 : compare(old[i].name, new[j].name)
                if order == 0 {
                    try compareValues(old[i], new[j], parent)
                } else if order < 0 {
                    append(try before.string(old[i].name), parent)
                } else {
                    append(try after.string(new[j].name), parent)
                }
                if order <= 0 { i += 1 }
                if order >= 0 { j += 1 }
            }
        }

        private mutating func compareValues(
            _ old: FieldsReader.Entry, _ new: FieldsReader.Entry, _ parent: [String]
        ) throws(Status) {
            if compare(old.value, new.value) == 0 { return }
            let name = try before.string(old.name)
            guard try before.typeClass(of: old.value) == .map, try after.typeClass(of: new.value) == .map else {
                return append(name, parent)
            }
            try compare(
                try before.entries(ofMap: old.value), try after.entries(ofMap: new.value), parent + [name])
        }

        private mutating func append(_ name: String, _ parent: [String]) {
            paths.append(FieldPath(segments: parent + [name]).string)
        }

        private func compare(_ old: Range<Int>, _ new: Range<Int>) -> Int {
            before.bytes.withUnsafeBytes { left in
                after.bytes.withUnsafeBytes { right in
                    UTF8Order.compare(
                        UnsafeRawBufferPointer(rebasing: left[old]), UnsafeRawBufferPointer(rebasing: right[new]))
                }
            }
        }
    }
}
