//! A disk that is small enough to fill.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// A file system in memory with a fixed size. Gone with its scope.
pub struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Mounts one. Only root may do so; the error says why it cannot be done.
    pub fn mount(bytes: u64) -> Result<Self, String> {
        let folder =
            tempfile::Builder::new().prefix("c-").tempdir_in("/tmp").map_err(|error| error.to_string())?;
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &format!("size={bytes},mode=700"), "consort-test"])
            .arg(folder.path());
        let output = mount.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        Ok(Self { folder })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, so that a process of a failed test that still holds it is in nobody's way.
        let unmounted = Command::new("umount").arg("-l").arg(self.path()).status();
        if !matches!(unmounted, Ok(status) if status.success()) {
            eprintln!("{} stays mounted: {unmounted:?}", self.path().display());
        }
    }
}
