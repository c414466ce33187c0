//! Types by name in a description in BPF type format (Documentation/bpf/btf.rst), of the host's byte order.

const MAGIC: u16 = 0xeb9f;
/// Magic, version, flags, bytes of the header; offsets and lengths of types and strings.
const HEADER_BYTES: usize = 24;
/// A name, kind with number of members, size or another type.
const TYPE_BYTES: usize = 12;
pub const STRUCT: u32 = 4;
pub const TYPEDEF: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    pub id: u32,
    /// Size of a structure in bytes.
    pub size: usize,
}

/// The first type of each pair of kind and name; None if the content is no such description.
pub fn find(content: &[u8], wanted: &[(u32, &str)]) -> Option<Vec<Option<Type>>> {
    let magic = u16::from_ne_bytes(content.get(..2)?.try_into().ok()?);
    let field = |at: usize| number(content, at);
    let (header, begin, bytes) = (field(4)?, field(8)?, field(12)?);
    if magic != MAGIC || header < HEADER_BYTES {
        return None;
    }
    let types = content.get(header.checked_add(begin)?..)?.get(..bytes)?;
    let strings = content.get(header.checked_add(field(16)?)?..)?;
    let mut found = vec![None; wanted.len()];
    let (mut at, mut id) = (0, 1);
    while at < types.len() {
        let info = u32::try_from(number(types, at + 4)?).ok()?;
        let kind = kind(info);
        if wanted.iter().any(|one| one.0 == kind) {
            let name = strings.get(number(types, at)?..)?;
            let name = name.split(|byte| *byte == 0).next()?;
            let place = wanted
                .iter()
                .position(|one| one.0 == kind && one.1.as_bytes() == name);
            if let Some(place) = place {
                let size = number(types, at + 8)?;
                found[place].get_or_insert(Type { id, size });
            }
        }
        at += TYPE_BYTES + bytes_after(info)?;
        id += 1;
    }
    (at == types.len()).then_some(found)
}

fn kind(info: u32) -> u32 {
    info >> 24 & 0x1f
}

/// What follows a type: one or more entries, by its kind.
fn bytes_after(info: u32) -> Option<usize> {
    let entries = (info & 0xffff) as usize;
    Some(match kind(info) {
        // Pointers, forward declarations, names of types, qualifiers, functions, floats, tags of types.
        2 | 7..=12 | 16 | 18 => 0,
        // Integers, variables, tags of declarations.
        1 | 14 | 17 => 4,
        3 => 12,                              // arrays
        STRUCT | 5 | 15 | 19 => 12 * entries, // structures, unions, sections, enumerations of 64 bits
        6 | 13 => 8 * entries,                // enumerations, parameters
        _ => return None,
    })
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let field = bytes.get(at..at.checked_add(4)?)?;
    usize::try_from(u32::from_ne_bytes(field.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(types: &[u32], strings: &[u8]) -> Vec<u8> {
        let bytes = |words: &[u32]| {
            words
                .iter()
                .flat_map(|word| word.to_ne_bytes())
                .collect::<Vec<u8>>()
        };
        let length = u32::try_from(types.len() * 4).unwrap();
        let mut content = bytes(&[u32::from(MAGIC) | 1 << 16, 24, 0, length, length, 8]);
        content.extend(bytes(types));
        content.extend(strings);
        content
    }

    #[test]
    fn a_type_is_found_by_kind_and_name_whatever_stands_before_it() {
        let integer = [0, 1 << 24, 4, 32];
        let two_members = [1, STRUCT << 24 | 2, 16, 0, 1, 0, 0, 1, 64];
        let content = described(&[&integer[..], &two_members].concat(), b"\0file\0");
        let found = find(&content, &[(TYPEDEF, "file"), (STRUCT, "file")]).unwrap();
        let file = Type { id: 2, size: 16 };
        assert_eq!(found, [None, Some(file)]);
    }

    #[test]
    fn what_is_cut_off_or_something_else_has_no_types() {
        let content = described(&[1, STRUCT << 24 | 2, 16], b"\0file\0");
        assert!(find(&content, &[(STRUCT, "file")]).is_none());
        assert!(find(b"\x7fELF, as vmlinux is, and long enough", &[]).is_none());
        assert!(find(b"", &[]).is_none());
    }
}
