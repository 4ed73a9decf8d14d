//! What the agent may do once it is set up: look after addresses, filters and packets, and nothing else.

use anyhow::{Context as _, anyhow};
use caps::{CapSet, Capability, CapsHashSet};
use nix::sys::prctl::{set_keepcaps, set_no_new_privs};
use nix::unistd::{User, chown, setgid, setgroups, setuid};
use std::path::PathBuf;

/// Addresses and filters; packets past the kernel's transports.
const KEPT: [Capability; 2] = [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW];

/// Who the agent is to be, if the file names somebody.
///
/// # Errors
/// If there is nobody of that name.
pub(crate) fn find(name: Option<&str>) -> anyhow::Result<Option<User>> {
    let Some(name) = name else { return Ok(None) };
    let found = User::from_name(name).with_context(|| format!("agent.user: {name}"))?;
    let found = found.ok_or_else(|| anyhow!("agent.user: {name}: expected a user of this machine"))?;
    Ok(Some(found))
}

/// Gives up everything but the two capabilities, for good; the sockets are then the user's.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn drop_to(user: Option<&User>, sockets: &[PathBuf]) -> anyhow::Result<()> {
    let kept: CapsHashSet = KEPT.into_iter().collect();
    // what nobody has, nobody gets back
    for capability in caps::all() {
        if !kept.contains(&capability) && caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)? {
            // a kernel may know fewer
            let _ = caps::drop(None, CapSet::Bounding, capability);
        }
    }
    if let Some(user) = user {
        for socket in sockets {
            chown(socket, Some(user.uid), Some(user.gid)).with_context(|| socket.display().to_string())?;
        }
        set_keepcaps(true)?;
        setgroups(&[]).context("agent.user")?;
        setgid(user.gid).context("agent.user")?;
        setuid(user.uid).context("agent.user")?;
        set_keepcaps(false)?;
    }
    caps::clear(None, CapSet::Inheritable)?;
    // both are part of what is permitted: it goes down last
    caps::set(None, CapSet::Effective, &kept).context("CAP_NET_ADMIN, CAP_NET_RAW")?;
    caps::set(None, CapSet::Permitted, &kept).context("CAP_NET_ADMIN, CAP_NET_RAW")?;
    set_no_new_privs()?;
    Ok(())
}
