//! Finds the fields of the tracepoint in its records, by its file `format` in tracefs.

use std::fs;
use std::path::Path;

use crate::exact::failure::Failure;

pub const CATEGORY: &str = "sunrpc";
pub const TRACEPOINT: &str = "rpc_stats_latency";
const FOLDERS: [&str; 2] = ["kernel/tracing", "kernel/debug/tracing"];
const TIMES: [&str; 3] = ["backlog", "rtt", "execute"];
const NUMBERS: [&str; 6] = [
    "client_id",
    "version",
    "progname",
    "procname",
    "xprt_id",
    "xid",
];
const BY_GLOBAL: [(&str, &str); 7] = [
    ("at_client", "client_id"),
    ("at_version", "version"),
    ("at_program", "progname"),
    ("at_operation", "procname"),
    ("at_queue", "backlog"),
    ("at_rtt", "rtt"),
    ("at_execute", "execute"),
];
/// Fields that not every kernel has.
const OPTIONAL: [(&str, &str); 2] = [("at_transport", "xprt_id"), ("at_xid", "xid")];

/// Offsets by the names of the program's constants.
#[derive(Debug, PartialEq, Eq)]
pub struct Format {
    pub offsets: Vec<(&'static str, u32)>,
    /// 4 or 8, as of the kernel's unsigned long.
    pub bytes_of_time: u32,
}

/// Reads the description of the tracepoint; the kernel has it once the module sunrpc is loaded.
pub fn read(sysfs: &Path) -> Result<Format, Failure> {
    let events = FOLDERS
        .map(|folder| sysfs.join(folder).join("events"))
        .into_iter()
        .find(|events| events.is_dir())
        .ok_or_else(|| refused(libc::ENOENT, "tracefs is not readable: mount -t tracefs tracefs /sys/kernel/tracing, and run as root"))?;
    let path = events.join(CATEGORY).join(TRACEPOINT).join("format");
    let text = fs::read_to_string(&path).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT) => refused(
            libc::ENOENT,
            "the kernel has no tracepoint sunrpc:rpc_stats_latency (Linux 4.17): the module sunrpc is not loaded",
        ),
        _ => Failure::os(&path.display().to_string(), &error),
    })?;
    parse(&text).ok_or_else(|| {
        refused(
            libc::ENOTSUP,
            "the tracepoint sunrpc:rpc_stats_latency has other fields than those known here",
        )
    })
}

fn refused(errno: i32, text: &str) -> Failure {
    Failure::Os {
        errno,
        text: text.to_owned(),
    }
}

/// None where a field is missing that all kernels have, or is not of the size that it has there.
fn parse(text: &str) -> Option<Format> {
    let fields: Vec<(&str, u32, u32)> = text.lines().filter_map(field).collect();
    let find = |name: &str| fields.iter().find(|field| field.0 == name);
    let bytes_of_time = find(TIMES[0])?.2;
    let as_expected = |name: &str, bytes: u32| find(name).is_none_or(|field| field.2 == bytes);
    let known = matches!(bytes_of_time, 4 | 8)
        && TIMES.iter().all(|name| as_expected(name, bytes_of_time))
        && NUMBERS.iter().all(|name| as_expected(name, 4));
    let mut offsets = BY_GLOBAL
        .iter()
        .map(|(global, name)| Some((*global, find(name)?.1)))
        .collect::<Option<Vec<_>>>()?;
    for (global, name) in OPTIONAL {
        offsets.extend(find(name).map(|field| (global, field.1)));
    }
    known.then_some(Format {
        offsets,
        bytes_of_time,
    })
}

/// Name, offset and size of `field:unsigned int client_id; offset:12; size:4; signed:0;`.
fn field(line: &str) -> Option<(&str, u32, u32)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';');
    let name = parts.next()?.rsplit(' ').next()?;
    let mut number = |prefix: &str| parts.next()?.trim().strip_prefix(prefix)?.parse().ok();
    let offset = number("offset:")?;
    Some((name, offset, number("size:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "name: rpc_stats_latency\nID: 1750\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:unsigned int task_id;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned int client_id;\toffset:12;\tsize:4;\tsigned:0;\n\
        \tfield:u32 xid;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:int version;\toffset:20;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] progname;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:__data_loc char[] procname;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned long backlog;\toffset:32;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned long rtt;\toffset:40;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned long execute;\toffset:48;\tsize:8;\tsigned:0;\n\
        \tfield:u32 xprt_id;\toffset:56;\tsize:4;\tsigned:0;\n";

    #[test]
    fn fields_are_found_and_transports_where_there_are_any() {
        let found = parse(NEW).expect("all fields");
        assert_eq!(found.bytes_of_time, 8);
        assert_eq!(found.offsets.len(), 9);
        assert!(found.offsets.contains(&("at_execute", 48)));
        assert_eq!(found.offsets[7], ("at_transport", 56));
        assert_eq!(found.offsets[8], ("at_xid", 16));
        let old = NEW
            .replace("u32 xprt_id", "u32 something")
            .replace("u32 xid", "u32 else");
        assert_eq!(parse(&old).expect("the others").offsets.len(), 7);
    }

    #[test]
    fn other_fields_are_refused() {
        assert_eq!(parse(""), None);
        assert_eq!(parse(&NEW.replace("long rtt", "long else")), None);
        assert_eq!(
            parse(&NEW.replace("offset:40;\tsize:8", "offset:40;\tsize:4")),
            None
        );
    }
}
