//! What the kernel tells about processes: memory, processor time, wake-ups, and who belongs to a home.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::Context;

/// A process's memory in KB, as `smaps_rollup` tells it.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Memory {
    /// All that is mapped and present, shared or not.
    pub resident: u64,
    /// What would be free again if the process ended.
    pub private: u64,
    /// Heap and stacks.
    pub anonymous: u64,
}

impl Memory {
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        let path = format!("/proc/{pid}/smaps_rollup");
        let text = fs::read_to_string(&path).with_context(|| format!("{path} cannot be read"))?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let mut memory = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(key), Some(value)) = (words.next(), words.next()) else { continue };
            let Ok(value) = value.parse::<u64>() else { continue };
            match key {
                "Rss:" => memory.resident = value,
                "Private_Clean:" | "Private_Dirty:" => memory.private += value,
                "Anonymous:" => memory.anonymous = value,
                _ => {}
            }
        }
        memory
    }
}

/// What the threads of processes have done so far.
#[derive(Clone, Default)]
pub struct Activity(HashMap<(u32, String), Thread>);

#[derive(Clone, Copy, Default)]
struct Thread {
    nanoseconds: u64,
    voluntary_switches: u64,
}

/// What was done between two looks.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Work {
    pub milliseconds: f64,
    pub wake_ups: u64,
}

impl Activity {
    /// Of all threads of these processes that are there now.
    pub fn of(pids: &[u32]) -> Self {
        let mut threads = HashMap::new();
        for pid in pids {
            let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { continue };
            for task in tasks.flatten() {
                // A thread may end while it is looked at; it did no work that matters.
                let Ok(schedule) = fs::read_to_string(task.path().join("schedstat")) else { continue };
                let Ok(status) = fs::read_to_string(task.path().join("status")) else { continue };
                let thread = Thread {
                    nanoseconds: first_number(&schedule),
                    voluntary_switches: field(&status, "voluntary_ctxt_switches:"),
                };
                threads.insert((*pid, task.file_name().to_string_lossy().into_owned()), thread);
            }
        }
        Self(threads)
    }

    /// What happened since an earlier look.
    pub fn since(&self, earlier: &Self) -> Work {
        let mut work = Work::default();
        for (key, now) in &self.0 {
            let before = earlier.0.get(key).copied().unwrap_or_default();
            work.milliseconds += now.nanoseconds.saturating_sub(before.nanoseconds) as f64 / 1e6;
            work.wake_ups += now.voluntary_switches.saturating_sub(before.voluntary_switches);
        }
        work
    }
}

/// The processor time of the calling thread so far, in milliseconds.
pub fn own_thread_milliseconds() -> f64 {
    fs::read_to_string("/proc/thread-self/schedstat").map_or(0.0, |text| first_number(&text) as f64 / 1e6)
}

/// Processor time of a whole process, threads that ended included, in the kernel's ticks.
pub fn ticks(pid: u32) -> u64 {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(0, |text| parse_ticks(&text))
}

/// What all processors did since the machine started, in the kernel's ticks.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Machine {
    pub busy: u64,
    pub idle: u64,
    /// Taken by the host of a virtual machine.
    pub stolen: u64,
}

impl Machine {
    pub fn now() -> Self {
        fs::read_to_string("/proc/stat").map_or(Self::default(), |text| Self::parse(&text))
    }

    fn parse(stat: &str) -> Self {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
        let ticks: Vec<u64> = line.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        let sum = |places: &[usize]| places.iter().filter_map(|place| ticks.get(*place)).sum();
        // user nice system idle iowait irq softirq steal
        Self { busy: sum(&[0, 1, 2, 5, 6]), idle: sum(&[3, 4]), stolen: sum(&[7]) }
    }

    pub fn since(self, earlier: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            idle: self.idle.saturating_sub(earlier.idle),
            stolen: self.stolen.saturating_sub(earlier.stolen),
        }
    }
}

fn parse_ticks(stat: &str) -> u64 {
    // The name stands in parentheses and may hold anything.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_ascii_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum()
}

fn first_number(text: &str) -> u64 {
    text.split_ascii_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or_default()
}

fn field(text: &str, key: &str) -> u64 {
    text.lines().find_map(|line| line.strip_prefix(key)).map_or(0, first_number)
}

/// The processes of a home.
#[derive(Default)]
pub struct Family {
    pub runners: Vec<u32>,
    /// What the runners started.
    pub children: Vec<u32>,
}

impl Family {
    /// Those whose runner serves a folder inside `home`.
    pub fn of(home: &Path) -> anyhow::Result<Self> {
        let mut family = Self::default();
        let mut parents = Vec::new();
        for entry in fs::read_dir("/proc")?.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            // A process that ends meanwhile is nobody's.
            let Ok(command) = fs::read(entry.path().join("cmdline")) else { continue };
            if is_runner_of(&command, home) {
                family.runners.push(pid);
            } else if let Ok(stat) = fs::read_to_string(entry.path().join("stat")) {
                parents.push((pid, parse_parent(&stat)));
            }
        }
        let of_a_runner = parents.iter().filter(|(_, parent)| family.runners.contains(parent));
        family.children = of_a_runner.map(|(pid, _)| *pid).collect();
        Ok(family)
    }
}

/// Processes and all that they started, as far as it has not changed its parent.
pub fn with_descendants(roots: &[u32]) -> anyhow::Result<Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        children.entry(parse_parent(&stat)).or_default().push(pid);
    }
    let mut found = Vec::new();
    let mut next = roots.to_vec();
    while let Some(pid) = next.pop() {
        if !found.contains(&pid) {
            found.push(pid);
            next.extend(children.get(&pid).into_iter().flatten());
        }
    }
    Ok(found)
}

/// All living processes in whose environment a variable's value begins with these bytes.
pub fn naming(wanted: &[u8]) -> anyhow::Result<Vec<i32>> {
    let names = |environment: &[u8]| {
        let mut values = environment.split(|byte| *byte == 0).filter_map(|variable| {
            let equals = variable.iter().position(|byte| *byte == b'=')?;
            Some(&variable[equals + 1..])
        });
        values.any(|value| value.starts_with(wanted))
    };
    let processes = fs::read_dir("/proc")?.flatten();
    // One that ends meanwhile, or is another user's, is none of them.
    let named =
        processes.filter(|entry| fs::read(entry.path().join("environ")).is_ok_and(|read| names(&read)));
    Ok(named.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

fn is_runner_of(command: &[u8], home: &Path) -> bool {
    let mut words = command.split(|byte| *byte == 0).skip(1);
    let folder = match (words.next(), words.next(), words.next()) {
        (Some(b"runner"), Some(b"--dir"), Some(folder)) => folder,
        _ => return false,
    };
    Path::new(&*String::from_utf8_lossy(folder)).starts_with(home)
}

fn parse_parent(stat: &str) -> u32 {
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_ascii_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_rollup() {
        let text = "5642-7ffd ---p 00000000 00:00 0    [rollup]\nRss:      1624 kB\nPss:  277 kB\n\
                    Shared_Clean: 1472 kB\nPrivate_Clean: 40 kB\nPrivate_Dirty: 112 kB\nAnonymous:  100 kB\n";
        assert_eq!(Memory::parse(text), Memory { resident: 1624, private: 152, anonymous: 100 });
    }

    #[test]
    fn ticks_and_parent_are_found_behind_any_name() {
        let stat = "12 (a ) b) S 7 1 1 0 -1 0 1 2 3 4 30 12 0 0 20 0 1 0 99";
        assert_eq!((parse_ticks(stat), parse_parent(stat)), (42, 7));
    }

    #[test]
    fn the_machine_is_read_from_its_first_line() {
        let stat = "cpu  10 1 5 100 20 2 3 7 0 0\ncpu0 10 1 5 100 20 2 3 7 0 0\n";
        assert_eq!(Machine::parse(stat), Machine { busy: 21, idle: 120, stolen: 7 });
    }

    #[test]
    fn work_is_counted_per_thread_and_new_threads_from_nothing() {
        let thread = |nanoseconds, voluntary_switches| Thread { nanoseconds, voluntary_switches };
        let key = |name: &str| (1, name.to_owned());
        let earlier = Activity(HashMap::from([(key("1"), thread(1_000_000, 5)), (key("2"), thread(9, 9))]));
        let later =
            Activity(HashMap::from([(key("1"), thread(3_000_000, 7)), (key("3"), thread(500_000, 1))]));
        assert_eq!(later.since(&earlier), Work { milliseconds: 2.5, wake_ups: 3 });
    }

    #[test]
    fn a_process_is_found_by_a_folder_in_its_environment() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("h");
        let mut child = std::process::Command::new("cat")
            .env("CONSORT_HOME", &inside)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let named = naming(folder.path().as_os_str().as_encoded_bytes()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(named, [child.id().cast_signed()]);
    }

    #[test]
    fn a_runner_is_known_by_its_folder() {
        let home = Path::new("/tmp/h");
        assert!(is_runner_of(b"/bin/consort\0runner\0--dir\0/tmp/h/run/a-1\0", home));
        assert!(!is_runner_of(b"/bin/consort\0runner\0--dir\0/tmp/h2/run/a-1\0", home));
        assert!(!is_runner_of(b"/bin/consort\0agents\0", home));
    }
}
