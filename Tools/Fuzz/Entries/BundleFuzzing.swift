import HearthBundle
import HearthModel
import HearthWire

/// The entry point for fuzzing bundles: for any bytes a reader returns or throws, independent of the pieces, and
/// accepted input can be built again into an equal bundle. A violated invariant traps.
package enum BundleFuzzing {
    package static func fuzz(_ bytes: [UInt8]) {
        let whole = outcome(bytes, pieceSize: max(bytes.count, 1))
        for size in [1, 7, 64] {
            let pieces = outcome(bytes, pieceSize: size)
            precondition(pieces.failure == whole.failure, "pieces of \(size) bytes end otherwise")
            precondition(pieces.elements.count == whole.elements.count, "pieces of \(size) bytes give other elements")
        }
        guard whole.failure == nil else { return }
        rebuild(whole.elements)
    }

    private static func outcome(
        _ bytes: [UInt8], pieceSize: Int
    ) -> (elements: [BundleElement], failure: Status?) {
        var reader = BundleReader(database: nil)
        var elements: [BundleElement] = []
        var position = 0
        do throws(Status) {
            while !reader.isAtEnd {
                if position < bytes.count {
                    reader.feed(bytes[position..<min(position + pieceSize, bytes.count)])
                    position += pieceSize
                } else {
                    reader.finish()
                }
                while let element = try reader.next() { elements.append(element) }
            }
            return (elements, nil)
        } catch {
            precondition(error.code == .dataLoss || error.code == .invalidArgument, "\(error)")
            return (elements, error)
        }
    }

    private static func rebuild(_ elements: [BundleElement]) {
        do throws(Status) {
            guard case .metadata(let metadata)? = elements.first else { preconditionFailure("no metadata first") }
            var builder = try BundleBuilder(id: metadata.id)
            for element in elements {
                guard case .document(let document) = element else { continue }
                let time = TimestampMessage(document.readTime)
                guard let contents = document.contents else {
                    try builder.add(missing: document.name.string, readTime: time)
                    continue
                }
                try builder.add(
                    EncodedDocument(
                        name: document.name.string, fields: FieldsCodec.encode(contents.fields),
                        createTime: contents.createTime, updateTime: contents.updateTime), readTime: time)
            }
            precondition(builder.documentCount == metadata.totalDocuments, "another number of documents")
            let bundle = try builder.build()
            precondition(outcome(bundle, pieceSize: bundle.count).failure == nil, "refuses its own bundle")
        } catch {
            preconditionFailure("what was read cannot be built: \(error)")
        }
    }
}
