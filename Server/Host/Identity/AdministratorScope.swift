/// The permissions of an administrator.
package struct AdministratorScope: Sendable, Equatable {
    /// The only project that they may use; nil for all.
    package var project: String?
    package var isReadOnly = false

    package init(project: String? = nil, isReadOnly: Bool = false) {
        self.project = project
        self.isReadOnly = isReadOnly
    }
}
