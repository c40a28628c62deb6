import HearthExport
import HearthModel
import HearthWire

/// Entry points for fuzzing readers of exports. A violated invariant traps.
package enum ExportFuzzing {
    private static let target = DatabaseName(project: "target", database: "d")

    /// The bytes as a log, as one record of it, and as lines.
    package static func fuzz(_ bytes: [UInt8]) {
        fuzzLog(bytes)
        bytes.withUnsafeBytes { fuzzRecord($0) }
        fuzzLines(bytes)
    }

    private static func fuzzLog(_ bytes: [UInt8]) {
        let log = LogReader(MemorySource(bytes))
        var count = 0
        do throws(Status) {
            while try log.next({ fuzzRecord($0) }) != nil { count += 1 }
            precondition(log.consumedBytes == bytes.count, "a log ends before its file")
        } catch {
            precondition(error.code == .invalidArgument, "\(error)")
        }
        precondition(count <= bytes.count / 7, "there are more records than their headers take")
    }

    /// What is read can be written and reads as the same.
    private static func fuzzRecord(_ record: UnsafeRawBufferPointer) {
        var kept = EntityReader()
        var moved = EntityReader(target: target)
        do throws(Status) {
            let document = try kept.read(record)
            let other = try moved.read(record)
            precondition(document.path == other.path && document.database == other.database)
            guard let database = document.database else { preconditionFailure("a key has no database") }
            do throws(Status) { try document.validate() } catch { return }
            precondition(kept.legacyValueCount == moved.legacyValueCount)
            check(document, of: database)
        } catch {
            precondition(error.code == .invalidArgument, "\(error)")
        }
    }

    private static func check(_ document: ExportedDocument, of database: DatabaseName) {
        do throws(Status) {
            let canonical = FieldsCodec.encode(try FieldsCodec.decode(document.fields))
            precondition(canonical == document.fields, "the fields are not canonical")
            var writer = EntityWriter(database: database)
            let written = try writer.record(path: document.path, fields: document.fields)
            var reader = EntityReader()
            let again = try written.withBytes { bytes throws(Status) in try reader.read(bytes) }
            precondition(again == document, "a record reads otherwise when it is written again")
            let line = try LineWriter().line(path: document.path, fields: document.fields)
            let lines = LineReader(MemorySource(line))
            let fromLine = try lines.next()
            precondition(fromLine?.path == document.path && fromLine?.fields == document.fields, "a line differs")
        } catch {
            preconditionFailure("a document that was read is refused: \(error)")
        }
    }

    private static func fuzzLines(_ bytes: [UInt8]) {
        let lines = LineReader(MemorySource(bytes), target: target)
        do throws(Status) {
            while let document = try lines.next() {
                let line = try LineWriter().line(path: document.path, fields: document.fields)
                let again = try LineReader(MemorySource(line)).next()
                precondition(again?.path == document.path && again?.fields == document.fields, "a line differs")
            }
        } catch {
            precondition(error.code == .invalidArgument, "\(error)")
        }
    }
}
