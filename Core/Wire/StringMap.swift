import HearthModel

/// map<string, string>, sorted by the UTF-8 bytes of the keys, each key once.
package struct StringMap: Sendable {
    package struct Entry: Sendable {
        package var key: String
        package var value: String

        package init(key: String, value: String) {
            self.key = key
            self.value = value
        }
    }

    package private(set) var entries: [Entry] = []

    package init() {}

    static func tooMany() -> Status { .invalidArgument("There are more than \(Limits.labelsMax) labels.") }

    package subscript(key: String) -> String? {
        entries.first { UTF8Order.equal($0.key, key) }?.value
    }

    /// Sets a key's value; an existing value is replaced.
    package mutating func set(_ key: String, _ value: String) {
        let index = entries.firstIndex { UTF8Order.compare($0.key, key) >= 0 } ?? entries.count
        if index < entries.count, UTF8Order.equal(entries[index].key, key) {
            entries[index].value = value
        } else {
            entries.insert(Entry(key: key, value: value), at: index)
        }
    }
}
