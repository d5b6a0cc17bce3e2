//! Which version of a profile an agent was started with.
//!
//! A revision goes to clients and into events, and a profile holds secrets. So it is a keyed hash of 64 bits: without the
//! key, which never leaves the daemon's database, nobody can try out values against it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Profile;

/// Tells one version of a profile from another. Equal only for profiles that start the same process in the same way.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ProfileRevision(String);

/// What revisions are made with: random, kept by the daemon, the same over its restarts.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct RevisionKey(u64, u64);

impl RevisionKey {
    /// The key made of these random bytes.
    pub fn new(random: [u8; 16]) -> Self {
        let [low, high] = [&random[..8], &random[8..]].map(little_endian);
        Self(low, high)
    }
}

impl Profile {
    /// Which version of it this is. Follows what an agent's process is started with: another name or permission mode,
    /// which running agents have by themselves, makes no other version.
    pub fn revision(&self, key: &RevisionKey) -> ProfileRevision {
        let concerned = (
            self.driver,
            self.program(),
            &self.args,
            &self.environment,
            &self.default_model,
            (self.sandbox_mode, self.approval_policy),
        );
        // These types always serialise.
        let text = serde_json::to_vec(&concerned).unwrap_or_default();
        ProfileRevision(format!("{:016x}", sip_hash(key, &text)))
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// SipHash-2-4. The standard library's hasher may change with its version, and revisions are kept longer than that.
fn sip_hash(key: &RevisionKey, text: &[u8]) -> u64 {
    let RevisionKey(k0, k1) = *key;
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let mut take_in = |word: u64| {
        v[3] ^= word;
        round(&mut v);
        round(&mut v);
        v[0] ^= word;
    };
    let (words, rest) = text.as_chunks::<8>();
    words.iter().for_each(|word| take_in(u64::from_le_bytes(*word)));
    take_in((text.len() as u64) << 56 | little_endian(rest));
    v[2] ^= 0xff;
    (0..4).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ProfileId;
    use crate::policy::PermissionMode;
    use crate::profile::{DriverKind, EnvironmentChange, SandboxMode};

    fn key(first: u8) -> RevisionKey {
        RevisionKey::new(std::array::from_fn(|n| first + n as u8))
    }

    #[test]
    fn the_hash_is_the_published_one() {
        // From the reference implementation: key 00..0f, input 00, 00 01, 00 01 02, ...
        let expected = [
            (0, 0x726f_db47_dd0e_0e31_u64),
            (1, 0x74f8_39c5_93dc_67fd),
            (8, 0x93f5_f579_9a93_2462),
            (15, 0xa129_ca61_49be_45e5),
        ];
        for (length, hash) in expected {
            let text: Vec<u8> = (0..length).collect();
            assert_eq!(sip_hash(&key(0), &text), hash, "{length}");
        }
    }

    #[test]
    fn what_a_process_is_started_with_makes_the_revision() {
        let profile = Profile {
            environment: vec![EnvironmentChange::try_from("KEY=hunter2".to_owned()).unwrap()],
            ..Profile::new(ProfileId::new("p"), "p", DriverKind::Codex)
        };
        let revision = profile.revision(&key(0));
        let changed = |change: fn(&mut Profile)| {
            let mut changed = profile.clone();
            change(&mut changed);
            changed.revision(&key(0)) != revision
        };
        assert!(changed(|profile| profile.command = Some("other".into())));
        assert!(changed(|profile| profile.args.push("-v".into())));
        assert!(changed(|profile| profile.environment.clear()));
        assert!(changed(|profile| profile.default_model = Some("m".into())));
        assert!(changed(|profile| profile.sandbox_mode = Some(SandboxMode::ReadOnly)));
        assert!(!changed(|profile| profile.command = Some("codex".into())), "the driver's own program");
        assert!(!changed(|profile| profile.name = "other".into()));
        assert!(!changed(|profile| profile.default_permissions = PermissionMode::Plan));
        assert_ne!(profile.revision(&key(1)), revision, "the key counts");
    }
}
