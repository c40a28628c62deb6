extension TreeJSON {
    /// The elements of an array as slices of its JSON, which are valid and not parsed yet. For envelopes.
    package static func elements(
        _ string: [UInt8], in range: Range<Int>? = nil
    ) throws(TreeDataError) -> [Range<Int>] {
        try string.withUnsafeBufferPointer { (bytes) throws(TreeDataError) in
            var cursor = JSONCursor(bytes, in: range ?? 0..<bytes.count)
            return try cursor.whole { (cursor) throws(TreeDataError) in
                var elements: [Range<Int>] = []
                try cursor.array { (cursor, _) throws(TreeDataError) in
                    let first = cursor.index
                    try cursor.skip()
                    elements.append(first..<cursor.index)
                }
                return elements
            }
        }
    }
}
