//! Which calls are a person's alone.
//!
//! Owns the list and the refusal. Who stands behind a connection is `consort_hub::peer`'s to say. An agent may look at
//! what any client sees, and changes things through its own tools, where it is known as the agent it is. Invariant: a
//! call that changes anything, or decides anything, is a person's.

use consort_hub::peer::Speaker;
use consort_model::Refusal;

use crate::protocol::Call;

/// Whether only a person may make this call. A new call must take a side.
pub fn is_a_persons(call: &Call) -> bool {
    match call {
        Call::Hello { .. }
        | Call::Subscribe {}
        | Call::Watch { .. }
        | Call::ListAgents { .. }
        | Call::GetAgent { .. }
        | Call::Queue { .. }
        | Call::Transcript { .. }
        | Call::Changes { .. }
        | Call::Diff { .. }
        | Call::ListWorktrees {}
        | Call::Inbox {}
        | Call::ListMessages { .. }
        | Call::ListRules {}
        | Call::ListProfiles {}
        | Call::CheckProfiles { .. }
        | Call::Status {} => false,
        Call::CreateAgent(_)
        | Call::ListSessions { .. }
        | Call::ResumeSession { .. }
        | Call::Send { .. }
        | Call::Steer { .. }
        | Call::EditPrompt { .. }
        | Call::Interrupt { .. }
        | Call::Close { .. }
        | Call::Fork { .. }
        | Call::Reopen { .. }
        | Call::Restart { .. }
        | Call::Rebind { .. }
        | Call::Rename { .. }
        | Call::SetPermissions { .. }
        | Call::Choose { .. }
        | Call::FinishWorktree { .. }
        | Call::RemoveWorktree { .. }
        | Call::Answer { .. }
        | Call::AnswerMany { .. }
        | Call::AddRule(_)
        | Call::RemoveRule { .. }
        | Call::AddProfile(_)
        | Call::EditProfile { .. }
        | Call::DuplicateProfile { .. }
        | Call::RemoveProfile { .. }
        | Call::SetDefaultProfile { .. }
        | Call::ImportProfiles { .. }
        | Call::SetLimits { .. }
        | Call::SetKeys { .. }
        | Call::Stop { .. } => true,
    }
}

/// Refuses whoever is no person.
pub fn check(speaker: &Speaker) -> Result<(), Refusal> {
    let reason = match speaker {
        Speaker::Person => return Ok(()),
        Speaker::Agent(_) => {
            "this was asked by a process of an agent, and only a person may do it; agents use their team \
                              tools, and wait for the person to answer"
                .to_owned()
        }
        Speaker::Daemon => {
            "this was asked by a command that the daemon runs, and only a person may do it".to_owned()
        }
        Speaker::Unknown { reason } => {
            format!(
                "only a person may do this, and who asks cannot be told: {reason}; run it from your own shell"
            )
        }
    };
    Err(Refusal::NotAllowed { reason })
}
