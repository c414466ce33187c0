//! Whether the control group has room for the programs: while it loads them the kernel ends a process rather than to refuse.

use std::fs;
use std::path::{Path, PathBuf};

/// Taken for a moment: by the description of the kernel's types here, and by the verifier in the kernel (22 to 25 MB).
const LOADING_BYTES: u64 = 32 << 20;

/// Files of a version of the memory controller: limit, use, and in memory.stat what is left of files.
struct Names {
    limit: &'static str,
    used: &'static str,
    files: [&'static str; 2],
}

const VERSION_1: Names = Names {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    files: ["total_active_file", "total_inactive_file"],
};
const VERSION_2: Names = Names {
    limit: "memory.max",
    used: "memory.current",
    files: ["active_file", "inactive_file"],
};

/// Why there is too little memory for maps of so many bytes, with the fix: the same words as long as it is so.
pub fn refusal(procfs: &Path, sysfs: &Path, map_bytes: u64) -> Option<String> {
    let needed = map_bytes + LOADING_BYTES;
    let (room, limit) = least_room(procfs, sysfs)?;
    (room < needed).then(|| {
        format!(
            "a limit of the control group leaves less than the {} MB of memory that exact time takes to begin: raise {}",
            needed >> 20,
            limit.display()
        )
    })
}

/// Bytes that this process's group and those above it leave, and the file of the limit that leaves least.
fn least_room(procfs: &Path, sysfs: &Path) -> Option<(u64, PathBuf)> {
    let groups = fs::read_to_string(procfs.join("self/cgroup")).ok()?;
    let root = sysfs.join("fs/cgroup");
    let rooms = groups.lines().flat_map(|line| of_line(&root, line));
    rooms.min()
}

/// A line is a number, controllers and a path with colons between; without controllers it is of version 2.
fn of_line(root: &Path, line: &str) -> Vec<(u64, PathBuf)> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
        return Vec::new();
    };
    if controllers.is_empty() {
        return rooms(root, path, &VERSION_2);
    }
    if controllers.split(',').any(|one| one == "memory") {
        return rooms(&root.join("memory"), path, &VERSION_1);
    }
    Vec::new()
}

fn rooms(root: &Path, path: &str, names: &Names) -> Vec<(u64, PathBuf)> {
    let path = Path::new(path.trim_start_matches('/'));
    // A container sees its own group as the root, whatever its path is called outside.
    let known = path.ancestors().map(|group| root.join(group));
    known
        .filter_map(|group| Some((room_of(&group, names)?, group.join(names.limit))))
        .collect()
}

fn room_of(group: &Path, names: &Names) -> Option<u64> {
    let number = |name: &str| {
        let text = fs::read_to_string(group.join(name)).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let (limit, used) = (number(names.limit)?, number(names.used)?);
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let files = stat.lines().filter_map(|line| {
        let (name, bytes) = line.split_once(' ')?;
        names
            .files
            .contains(&name)
            .then(|| bytes.parse::<u64>().ok())?
    });
    Some(limit.saturating_sub(used.saturating_sub(files.sum())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(root: &Path, path: &str, files: &[(&str, &str)]) {
        let folder = root.join(path);
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
    }

    fn host(name: &str, membership: &str) -> PathBuf {
        let root =
            std::env::temp_dir().join(format!("lunscope-memory-{name}-{}", std::process::id()));
        group(&root, "self", &[("cgroup", membership)]);
        root
    }

    #[test]
    fn the_group_with_the_least_room_counts_and_files_can_make_room() {
        let root = host("2", "0::/a/b\n");
        let limited = [
            ("memory.max", "104857600\n"),
            ("memory.current", "94371840\n"),
            (
                "memory.stat",
                "anon 1\ninactive_file 10485760\nactive_file 10485760\n",
            ),
        ];
        let unlimited = [("memory.max", "max\n"), ("memory.current", "94371840\n")];
        group(&root, "fs/cgroup/a", &limited);
        group(&root, "fs/cgroup/a/b", &unlimited);
        let found = least_room(&root, &root);
        let said = refusal(&root, &root, 1 << 20);
        let enough = refusal(&root, &root, 0);
        fs::remove_dir_all(&root).unwrap();
        let limit = root.join("fs/cgroup/a/memory.max");
        assert_eq!(found, Some((30 << 20, limit.clone())));
        let words = "less than the 33 MB of memory that exact time takes to begin";
        assert_eq!(
            said.unwrap(),
            format!(
                "a limit of the control group leaves {words}: raise {}",
                limit.display()
            )
        );
        assert!(enough.is_some());
    }

    #[test]
    fn a_group_that_is_known_by_another_path_is_the_root_of_what_is_seen() {
        let root = host("1", "4:cpu:/\n3:memory,hugetlb:/docker/1\n0::/\n");
        let limited = [
            ("memory.limit_in_bytes", "41943040"),
            ("memory.usage_in_bytes", "0"),
        ];
        group(&root, "fs/cgroup/memory", &limited);
        let found = (
            refusal(&root, &root, 0),
            refusal(&root, &root, 9 << 20).is_some(),
        );
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, (None, true));
    }

    #[test]
    fn without_a_limit_or_a_controller_there_is_room() {
        let root = host("0", "0::/\n");
        let found = refusal(&root, &root, 1 << 40);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, None);
    }
}
