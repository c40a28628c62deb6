/// Whether an administrator's request changes something. There is no default: a method that does not state it must not
/// compile.
package enum AdministratorEffect: Sendable {
    case reads, writes
}
