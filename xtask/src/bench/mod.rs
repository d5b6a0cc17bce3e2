//! Speed and memory.

pub fn run(_args: &[String]) -> anyhow::Result<()> {
    anyhow::bail!("not built yet")
}
