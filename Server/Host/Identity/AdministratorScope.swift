/// The permissions of an administrator.
package struct AdministratorScope: Sendable, Equatable {
    /// The only project that they may use; nil for all.
    package var project: String?
    package var isReadOnly = false
    /// Of the credential; no permission depends on it.
    package var name: String

    package init(project: String? = nil, isReadOnly: Bool = false, name: String = "owner") {
        self.project = project
        self.isReadOnly = isReadOnly
        self.name = name
    }
}
