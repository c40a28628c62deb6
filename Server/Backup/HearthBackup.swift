/// Backups of a data folder while its server serves, and what they are made of.
///
/// `BackupService` makes one at a time: it has the stores make images of their files at one moment (`ImageSession`), and
/// hands those, and all else that is durable, to a `BackupTarget`: an archive that a client downloads (`TarTarget`), or a folder
/// (`BackupFolder`). The last file is the manifest (`BackupManifest`): what has none is no backup.
package enum HearthBackup {}
