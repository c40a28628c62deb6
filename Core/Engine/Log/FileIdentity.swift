import Glibc

/// The file of a name or a descriptor: an open file keeps its identity when its name is removed or is given to another one.
package struct FileIdentity: Equatable, Sendable {
    private let device: dev_t
    private let inode: ino_t

    private init(_ information: stat) { (device, inode) = (information.st_dev, information.st_ino) }

    /// - Returns: nil when nothing has that name, or the system does not say.
    package init?(path: String) {
        var information = stat()
        if stat(path, &information) != 0 { return nil }
        self.init(information)
    }

    package init?(descriptor: Int32) {
        var information = stat()
        if fstat(descriptor, &information) != 0 { return nil }
        self.init(information)
    }
}
