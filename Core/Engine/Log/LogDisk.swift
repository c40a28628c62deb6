import HearthModel

/// The files of one log. Tests have one that loses, tears and reorders what wasn't written durably.
package protocol LogDisk: Sendable {
    /// The names of the log's files; none when there is no log.
    func names() throws(Status) -> [String]
    /// Opens a file that exists.
    func open(_ name: String, isReadOnly: Bool) throws(Status) -> any LogFile
    /// Makes a file of zeros, durably. No file may have that name. The zeros are written and not only reserved:
    /// otherwise each `synchronize` would write the file's extents, too.
    func make(_ name: String, sizeBytes: Int) throws(Status)
    /// A file of the new name is replaced.
    func rename(_ name: String, to newName: String) throws(Status)
    func remove(_ name: String) throws(Status)
    /// Makes the names durable.
    func synchronizeNames() throws(Status)
    /// Whether a name is still that of the file. Programs that clean up or restore may remove or replace files that are in use.
    /// - Parameter file: the open file; nil when it is not open.
    func has(_ name: String, _ file: (any LogFile)?) -> Bool
    /// Fails when the files of the base were removed or replaced since the log was opened.
    func checkBase() throws(Status)
    /// Where a file is, for operators.
    func path(_ name: String) -> String
}

/// A file of a log. Closed when it is freed, at the latest.
package protocol LogFile: AnyObject, Sendable {
    var sizeBytes: Int { get }
    /// Reads all of a part of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(Status)
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(Status)
    /// Makes what was written durable. After a failure nobody knows what is.
    func synchronize() throws(Status)
    func close()
}
