// HearthExport: documents outside of a database: Google's managed export and NDJSON, both ways.
//
// - `ExportFolder` opens a managed export and lists its files; `ExportFolderReader` reads its documents one after
//   another; `ExportFolderWriter` writes such a folder beside its final name and renames it when it is whole.
// - `Log/` is the framing of its files (LevelDB's log), `Entities/` the records in them (EntityProto), and
//   `ExportMessages` the files that list files.
// - `Lines/` is NDJSON: a document a line.
//
// A document is an `ExportedDocument`: its path, and its fields in wire form (docs/decisions/0008). Readers and writers
// hold one record at a time, whatever the size of the export. Invariants: any bytes are read or refused, with the file
// and the position; what a writer has finished is whole and durable.
