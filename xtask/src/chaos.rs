//! Random work while things are killed.

pub fn run(_args: &[String]) -> anyhow::Result<()> {
    anyhow::bail!("not built yet")
}
