//! Signs of life of a process tree: the processor time it used.
//!
//! Asked only when a working agent has been silent for long, to tell a busy tool from a stuck agent.

use std::collections::HashMap;

/// Processor time that `root` and its descendants used so far, in clock ticks.
pub fn processor_time(root: i32) -> u64 {
    let mut processes: HashMap<i32, (i32, u64)> = HashMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(stat) =
            std::fs::read_to_string(entry.path().join("stat")).ok().as_deref().and_then(parse_stat)
        {
            processes.insert(pid, stat);
        }
    }
    let belongs = |mut pid: i32| {
        for _ in 0..processes.len() {
            if pid == root {
                return true;
            }
            match processes.get(&pid) {
                Some((parent, _)) => pid = *parent,
                None => return false,
            }
        }
        false
    };
    processes.iter().filter(|(pid, _)| belongs(**pid)).map(|(_, (_, ticks))| ticks).sum()
}

/// The parent and the ticks (own and of ended children) in a line of `/proc/PID/stat`. The program's name may hold spaces
/// and parentheses, so the fields are counted from its last one.
fn parse_stat(stat: &str) -> Option<(i32, u64)> {
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let ticks = (11..=14).map(|field| fields.get(field)?.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some((parent, ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_from_the_end_of_the_name() {
        let line = "42 (a b) c) S 7 42 42 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 100 200";
        assert_eq!(parse_stat(line), Some((7, 100)));
        for broken in ["", "42", "42 (x", "42 (x)", "42 (x) S y"] {
            assert_eq!(parse_stat(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn this_process_has_used_processor_time() {
        let before = processor_time(std::process::id() as i32);
        let mut sum = 0u64;
        while processor_time(std::process::id() as i32) == before {
            sum = sum.wrapping_mul(31).wrapping_add(1);
        }
        assert_ne!(sum, u64::MAX);
    }
}
