import CSQLite
import HearthModel

import Glibc

/// SQLite's result codes as `Status`.
package enum EngineError {
    /// The error of the last call on `handle`.
    /// - Parameters:
    ///   - code: the result of that call, extended or not.
    ///   - action: the attempted action, as the beginning of a sentence: "cannot store the commit".
    package static func status(_ handle: OpaquePointer?, _ code: Int32, _ action: String) -> Status {
        var extended = code
        var words = String(cString: sqlite3_errstr(code))
        var systemError: Int32 = 0
        if let handle {
            // The handle forgets a code that came from `sqlite3_bind` or from another handle.
            if sqlite3_extended_errcode(handle) & 0xFF == code & 0xFF {
                extended = sqlite3_extended_errcode(handle)
                words = String(cString: sqlite3_errmsg(handle))
            }
            systemError = lastSystemError(handle)
        }
        // Within this process connections do not block each other: there is one writer, and the log's readers don't
        // lock it.
        if code & 0xFF == SQLITE_BUSY { words = "another process uses the file" }
        var details = "SQLite \(extended)"
        if code & 0xFF == SQLITE_FULL {
            details += ", No space left on device"
        } else if systemError != 0, [SQLITE_IOERR, SQLITE_CANTOPEN].contains(code & 0xFF) {
            details += ", " + describe(errno: systemError)
        }
        return Status(statusCode(code), "\(action): \(words) (\(details)).")
    }

    /// The system's code for the last failure of one of the handle's files. SQLite loses it for failures of the log.
    private static func lastSystemError(_ handle: OpaquePointer) -> Int32 {
        let code = sqlite3_system_errno(handle)
        if code != 0 { return code }
        for pointer in [SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER] {
            var file: UnsafeMutablePointer<sqlite3_file>?
            var code: Int32 = 0
            guard sqlite3_file_control(handle, nil, pointer, &file) == SQLITE_OK, let file,
                let methods = file.pointee.pMethods,
                methods.pointee.xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &code) == SQLITE_OK
            else { continue }
            if code != 0 { return code }
        }
        return 0
    }

    /// The status code by the client's options: UNAVAILABLE where a later try may succeed.
    static func statusCode(_ code: Int32) -> Status.Code {
        switch code & 0xFF {
        case SQLITE_FULL, SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_LOCKED, SQLITE_PROTOCOL, SQLITE_NOMEM, SQLITE_READONLY,
            SQLITE_PERM, SQLITE_INTERRUPT:
            .unavailable
        case SQLITE_BUSY: .failedPrecondition
        case SQLITE_CORRUPT, SQLITE_NOTADB: .dataLoss
        case SQLITE_TOOBIG: .invalidArgument
        default: .internal
        }
    }

    /// The name of a database's file in messages that clients may get: without the folders of the server.
    static func fileName(_ path: String) -> Substring {
        path.lastIndex(of: "/").map { path[path.index(after: $0)...] } ?? path[...]
    }

    package static func describe(errno code: Int32) -> String {
        String(cString: strerror(code))
    }
}
