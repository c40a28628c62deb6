/// Merging under a mask, as `Write.updateMask` asks for it.
extension MapValue {
    /// Sets each path of the mask to the input's value, and deletes it when the input lacks it. Other fields do not
    /// change.
    ///
    /// Of overlapping paths the shorter one counts. A value on the path that is not a map is replaced by a map; a
    /// deletion creates no maps. Takes time in proportion to the map, the input and the mask, whatever the order of
    /// paths.
    package mutating func merge(_ input: MapValue, mask: [FieldPath]) {
        // After sorting by segments, the descendants of a path follow it directly.
        var outermost: [FieldPath] = []
        for path in mask.sorted() {
            if let last = outermost.last, last.isPrefix(of: path) { continue }
            outermost.append(path)
        }
        // Few paths are set one by one, many in one walk.
        if outermost.count * 8 < fields.count {
            for path in outermost {
                if let value = input[path: path] { set(path, value) } else { remove(path) }
            }
        } else {
            _ = merge(input, outermost[...], depth: 0)
        }
    }

    /// Walks over this map and the mask together.
    /// - Parameters:
    ///   - input: the input's value at this path; nil where it is not a map.
    ///   - mask: sorted, none below another, all with the same first `depth` segments.
    /// - Returns: whether anything was set; false when there were only deletions.
    private mutating func merge(_ input: MapValue?, _ mask: ArraySlice<FieldPath>, depth: Int) -> Bool {
        var merged: [Field] = []
        merged.reserveCapacity(fields.count + mask.count)
        var hasSet = false
        var rest = fields[...]
        var paths = mask
        while let first = paths.first {
            let name = first.segments[depth]
            let group = paths.prefix { UTF8Order.equal($0.segments[depth], name) }
            paths = paths[group.endIndex...]
            let before = rest.prefix { UTF8Order.compare($0.name, name) < 0 }
            merged += before
            rest = rest[before.endIndex...]
            var present: Value?
            if let next = rest.first, UTF8Order.equal(next.name, name) {
                present = next.value
                rest = rest.dropFirst()
            }
            if first.segments.count == depth + 1 {
                guard let value = input?[name] else { continue }
                merged.append(Field(name: name, value: value))
                hasSet = true
                continue
            }
            let (value, isSet) = Self.merged(present, input?[name], group, depth: depth + 1)
            if let value { merged.append(Field(name: name, value: value)) }
            hasSet = hasSet || isSet
        }
        fields = merged + rest
        return hasSet
    }

    private static func merged(
        _ present: Value?, _ input: Value?, _ mask: ArraySlice<FieldPath>, depth: Int
    ) -> (value: Value?, isSet: Bool) {
        var inputMap: MapValue?
        if case .map(let map)? = input { inputMap = map }
        if case .map(var map)? = present {
            let isSet = map.merge(inputMap, mask, depth: depth)
            return (.map(map), isSet)
        }
        guard let inputMap else { return (present, false) }
        var map = MapValue()
        let isSet = map.merge(inputMap, mask, depth: depth)
        return isSet ? (.map(map), true) : (present, false)
    }
}
