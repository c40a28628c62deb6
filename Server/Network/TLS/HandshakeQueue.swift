import HearthConcurrency

/// Elements that wait for one of a bounded number of slots: owners in rotation, and of one owner the newest first.
///
/// The rotation keeps an owner with thousands of elements from delaying the others. The newest comes first because those
/// that have waited longest are about to give up: in order, a queue that is longer than their patience would serve each
/// too late.
struct HandshakeQueue<Element> {
    private struct Line {
        /// Also of elements that were removed; the newest is the last.
        var numbers: [UInt64] = []
        var count = 0
    }

    private var elements: [UInt64: (element: Element, owner: UInt64)] = [:]
    private var lines: [UInt64: Line] = [:]
    /// Each owner that has a line, once.
    private var rotation = Queue<UInt64>()

    /// Numbers of removed elements that a line keeps, beside one for each of its elements.
    private static var removedNumbersMax: Int { 64 }

    var count: Int { elements.count }
    /// For the test of what removed elements leave.
    var keptNumbers: Int { lines.values.reduce(0) { $0 + $1.numbers.count } }
    var isEmpty: Bool { elements.isEmpty }

    /// - Parameter number: identifies the element; not in the queue.
    mutating func push(_ element: Element, number: UInt64, owner: UInt64) {
        elements[number] = (element, owner)
        if lines[owner] == nil { rotation.append(owner) }
        lines[owner, default: Line()].numbers.append(number)
        lines[owner]?.count += 1
    }

    mutating func remove(number: UInt64) {
        guard let owner = elements.removeValue(forKey: number)?.owner, var line = lines.removeValue(forKey: owner)
        else {
            return
        }
        line.count -= 1
        if line.numbers.count > 2 * line.count + Self.removedNumbersMax {
            line.numbers.removeAll { elements[$0] == nil }
        }
        // An owner without elements stays in the rotation until it is first, so that it is never in it twice.
        lines[owner] = line
    }

    /// - Parameter isAdmitted: whether an owner may have a further slot. It may be false of as many owners as there are slots,
    ///   all of which are looked at.
    mutating func pop(where isAdmitted: (UInt64) -> Bool = { _ in true }) -> Element? {
        for _ in 0..<rotation.count {
            guard let owner = rotation.popFirst() else { return nil }
            if lines[owner] != nil, !isAdmitted(owner) {
                rotation.append(owner)
                continue
            }
            guard var line = lines.removeValue(forKey: owner) else { continue }
            var found: Element?
            while found == nil, let number = line.numbers.popLast() {
                found = elements.removeValue(forKey: number)?.element
            }
            guard let found else { continue }
            line.count -= 1
            if line.count > 0 {
                lines[owner] = line
                rotation.append(owner)
            }
            return found
        }
        return nil
    }
}
