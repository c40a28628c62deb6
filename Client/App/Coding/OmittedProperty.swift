/// A property wrapper whose value isn't part of the data: encoders leave it out, decoders make it of the rest of what they
/// know, without looking for its name in the data.
package protocol OmittedProperty {}
