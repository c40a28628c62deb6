/// The elements of an array during a sequence of `arrayUnion` and `arrayRemove` transforms. Each transform costs O(its
/// own elements), not O(array), and has the same result as `ElementSet`.
@usableFromInline package struct ArrayEditor {
    /// Nil where an element was removed.
    private var slots: [Value?]
    private var slotByValue: [EquivalentValue: Int] = [:]
    /// The slots of further elements that are equivalent to an earlier one.
    private var duplicates: [EquivalentValue: [Int]] = [:]
    private var removedCount = 0

    package init(_ elements: [Value]) {
        slots = elements
        slotByValue.reserveCapacity(elements.count)
        for (slot, element) in elements.enumerated() {
            let key = EquivalentValue(element)
            if slotByValue[key] == nil {
                slotByValue[key] = slot
            } else {
                duplicates[key, default: []].append(slot)
            }
        }
    }

    /// Adds those that the array lacks, each once.
    package mutating func append(_ elements: [Value]) {
        for element in elements {
            let key = EquivalentValue(element)
            if slotByValue[key] != nil { continue }
            slotByValue[key] = slots.count
            slots.append(element)
        }
    }

    /// Removes all that are equivalent to one of some elements.
    package mutating func remove(_ elements: [Value]) {
        for element in elements {
            let key = EquivalentValue(element)
            guard let first = slotByValue.removeValue(forKey: key) else { continue }
            for slot in [first] + (duplicates.removeValue(forKey: key) ?? []) {
                slots[slot] = nil
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
