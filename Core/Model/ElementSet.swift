/// Equality of array elements for `arrayUnion` and `arrayRemove`: equivalent values are one element, `3` and `3.0`, `0`
/// and `-0.0`, any two NaN.
enum ElementSet {
    /// Up to this many elements are compared one by one with each element of the array; hashing the whole array costs
    /// more.
    private static let comparedMax = 8

    /// The array, followed by those of `elements` that it lacks, each once.
    static func appending(_ elements: [Value], to array: [Value]) -> [Value] {
        var result = array
        if elements.count <= comparedMax {
            for element in elements where !result.contains(where: { ValueOrder.equivalent($0, element) }) {
                result.append(element)
            }
            return result
        }
        result.reserveCapacity(array.count + elements.count)
        var present = Set(array.lazy.map(EquivalentValue.init))
        for element in elements where present.insert(EquivalentValue(element)).inserted { result.append(element) }
        return result
    }

    /// The array without all elements that are equivalent to one of `elements`.
    static func removing(_ elements: [Value], from array: [Value]) -> [Value] {
        if elements.count <= comparedMax {
            return array.filter { element in !elements.contains { ValueOrder.equivalent($0, element) } }
        }
        let removed = Set(elements.lazy.map(EquivalentValue.init))
        return array.filter { !removed.contains(EquivalentValue($0)) }
    }
}
