/// The elements of an array while many `arrayUnion` and `arrayRemove` follow each other. Each costs its own elements, not those of
/// the array, and comes to what `ElementSet` does.
package struct ArrayEditor {
    /// Nil where an element was removed.
    private var slots: [Value?]
    private var places: [EquivalentValue: Int] = [:]
    /// Where further elements are that are equivalent to one before.
    private var duplicates: [EquivalentValue: [Int]] = [:]
    private var removedCount = 0

    package init(_ elements: [Value]) {
        slots = elements
        places.reserveCapacity(elements.count)
        for (place, element) in elements.enumerated() {
            let key = EquivalentValue(element)
            if places[key] == nil {
                places[key] = place
            } else {
                duplicates[key, default: []].append(place)
            }
        }
    }

    /// Adds those that the array lacks, each once.
    package mutating func append(_ elements: [Value]) {
        for element in elements {
            let key = EquivalentValue(element)
            if places[key] != nil { continue }
            places[key] = slots.count
            slots.append(element)
        }
    }

    /// Removes all that are equivalent to one of some elements.
    package mutating func remove(_ elements: [Value]) {
        for element in elements {
            let key = EquivalentValue(element)
            guard let first = places.removeValue(forKey: key) else { continue }
            for place in [first] + (duplicates.removeValue(forKey: key) ?? []) {
                slots[place] = nil
                removedCount += 1
            }
        }
    }

    package var elements: [Value] {
        var elements: [Value] = []
        elements.reserveCapacity(slots.count - removedCount)
        for case let element? in slots { elements.append(element) }
        return elements
    }
}
