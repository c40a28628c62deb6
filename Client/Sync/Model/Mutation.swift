import HearthModel

/// One write of the user that was not acknowledged yet: `set`, `patch`, `delete`, `verify`.
package struct Mutation: Sendable {
    package enum Kind: Sendable {
        /// The whole document.
        case set(MapValue)
        /// The fields of the mask. Fields that the value lacks are removed.
        case patch(MapValue, mask: [FieldPath])
        case delete
        /// Only in transactions: checks the precondition.
        case verify
    }

    package var key: ResourcePath
    package var kind: Kind
    package var transforms: [FieldTransform]
    package var precondition: Precondition

    package init(key: ResourcePath, kind: Kind, transforms: [FieldTransform] = [], precondition: Precondition = .none) {
        self.key = key
        self.kind = kind
        self.transforms = transforms
        self.precondition = precondition
    }
}
