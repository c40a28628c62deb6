import HearthEngine
import HearthModel

/// Lists collection ids, and documents including missing ones that have descendants, without reading documents.
///
/// In the present state both skip from one id to the next: their cost is proportional to their answer. In the past
/// everything below the path is read, because an id counts only when it existed then.
package enum Listing {
    /// A document of a collection, or a missing one that has descendants.
    package struct Item: Sendable {
        package var key: [UInt8]
        package var document: StoredDocument?
    }

    /// The ids of the collections directly below a document or the root, in the order of their UTF-8 bytes.
    /// - Parameters:
    ///   - after: ids up to and including this one are left out.
    ///   - limit: at most so many ids.
    package static func collectionIDs(
        below parent: ResourcePath, after: String?, limit: Int, view: ReadView
    ) throws(Status) -> [String] {
        let prefix = DocumentKey.encodeSegments(parent)
        var ids: [String] = []
        var position = prefix
        if let after {
            var last = prefix
            IndexValue.appendSegment(after, to: &last)
            position = KeyRange.successor(ofPrefix: last) ?? last
        }
        let walker = try Walker(prefix: prefix, from: position, view: view)
        while ids.count < limit, let segment = try walker.nextSegment() {
            var index = prefix.count
            guard let id = DocumentKey.readSegment(segment, &index) else { break }
            ids.append(id)
        }
        return ids
    }

    /// The documents of a collection in the order of names, and the missing ones between them.
    /// - Parameters:
    ///   - after: the key of the item before the first one.
    ///   - limit: at most so many items.
    ///   - bytesMax: the last item is the first after documents of so many bytes.
    package static func items(
        of collection: ResourcePath, after: [UInt8]?, limit: Int, bytesMax: Int, view: ReadView
    ) throws(Status) -> [Item] {
        let below = DocumentKey.encodeSegments(collection)
        let direct = DocumentKey.collectionPrefix(collection)
        // After the prefix both kinds of keys continue with the document's SEG.
        let lastSegment = after.map { Array($0.dropFirst(direct.count).dropLast()) }
        let documents = try DirectDocuments(prefix: direct, afterSegment: lastSegment, view: view)
        let start = lastSegment.map { KeyRange.successor(ofPrefix: below + $0) ?? below } ?? below
        let walker = try Walker(prefix: below, from: start, view: view)
        var items: [Item] = []
        var document = try documents.next()
        var segment = try walker.nextSegment().map { Array($0.dropFirst(below.count)) }
        // All but the last item.
        var bytes = 0
        while items.count < limit, bytes < bytesMax, document != nil || segment != nil {
            bytes += items.last?.document?.fields.count ?? 0
            let documentSegment = document.map { Array($0.key.dropFirst(direct.count).dropLast()) }
            let order: Int
            if let documentSegment, let segment {
                order = UTF8Order.compare(documentSegment, segment)
            } else {
                order = documentSegment == nil ? 1 : -1
            }
            if order <= 0 {
                items.append(document!)
                document = try documents.next()
            } else {
                items.append(Item(key: direct + segment! + [IndexValue.Tag.terminator], document: nil))
            }
            if order >= 0 { segment = try walker.nextSegment().map { Array($0.dropFirst(below.count)) } }
        }
        return items
    }

    /// The documents directly in a collection.
    private final class DirectDocuments {
        private let view: ReadView
        private let cursor: any KeyCursor
        private let overlay: PastOverlay?
        /// Keys of documents that the overlay replaces, the next one last.
        private var past: [[UInt8]] = []
        private var pastHead: Item?
        private var head: Item?

        init(prefix: [UInt8], afterSegment: [UInt8]?, view: ReadView) throws(Status) {
            self.view = view
            var range = KeyRange(prefix: prefix)
            if let afterSegment { range.lower = prefix + afterSegment + [IndexValue.Tag.terminator, 0] }
            cursor = try view.snapshot.scan(.documents, range, reverse: false, values: true)
            overlay = try view.overlay(of: ScopeChanges.Scope(collectionPrefix: prefix))
            past = (overlay?.keys ?? []).filter { UTF8Order.compare($0, range.lower) >= 0 }
            past.sort { UTF8Order.compare($0, $1) > 0 }
        }

        deinit { cursor.close() }

        func next() throws(Status) -> Item? {
            if head == nil { head = try nextPresent() }
            while pastHead == nil, let key = past.popLast() {
                // It may not have existed then.
                if let document = try overlay?.document(key) { pastHead = Item(key: key, document: document) }
            }
            if let earlier = pastHead, head.map({ UTF8Order.compare(earlier.key, $0.key) < 0 }) ?? true {
                pastHead = nil
                return earlier
            }
            defer { head = nil }
            return head
        }

        private func nextPresent() throws(Status) -> Item? {
            while try cursor.next() {
                let key = cursor.key
                if let overlay, overlay.replaces(key) { continue }
                return Item(key: key, document: try StoredDocument(stored: cursor.value))
            }
            return nil
        }
    }

    /// The distinct SEGs that follow a prefix in document keys, each with the prefix.
    private final class Walker {
        private let prefix: [UInt8]
        private let snapshot: any Snapshot
        private var position: [UInt8]
        private var past: [[UInt8]]?

        init(prefix: [UInt8], from position: [UInt8], view: ReadView) throws(Status) {
            self.prefix = prefix
            self.position = position
            snapshot = view.snapshot
            if let overlay = try view.overlay(of: ScopeChanges.Scope(below: prefix)) {
                past = try Self.segments(prefix, position, overlay, view).reversed()
            }
        }

        func nextSegment() throws(Status) -> [UInt8]? {
            if past != nil { return past!.popLast() }
            guard let upper = KeyRange.successor(ofPrefix: prefix + [IndexValue.Tag.stringSegment]) else { return nil }
            let lower =
                UTF8Order.compare(position, prefix + [IndexValue.Tag.numericSegment]) < 0
                ? prefix + [IndexValue.Tag.numericSegment] : position
            let cursor = try snapshot.scan(
                .documents, KeyRange(lower: lower, upper: upper), reverse: false, values: false)
            defer { cursor.close() }
            guard try cursor.next(), let end = DocumentKey.segmentEnd(cursor.key, prefix.count) else { return nil }
            let segment = Array(cursor.key.prefix(end))
            position = KeyRange.successor(ofPrefix: segment) ?? upper
            return segment
        }

        private static func segments(
            _ prefix: [UInt8], _ position: [UInt8], _ overlay: PastOverlay, _ view: ReadView
        ) throws(Status) -> [[UInt8]] {
            var found: Set<[UInt8]> = []
            func add(_ key: [UInt8]) {
                guard let end = DocumentKey.segmentEnd(key, prefix.count) else { return }
                let segment = Array(key.prefix(end))
                if UTF8Order.compare(segment, position) >= 0 { found.insert(segment) }
            }
            let range = KeyRange(prefix: prefix)
            let cursor = try view.snapshot.scan(.documents, range, reverse: false, values: false)
            defer { cursor.close() }
            while try cursor.next() {
                if !overlay.replaces(cursor.key) { add(cursor.key) }
            }
            for key in overlay.keys where try overlay.document(key) != nil { add(key) }
            return found.sorted { UTF8Order.compare($0, $1) < 0 }
        }
    }
}
