//! Names of functions by their addresses, from the symbols of this program.

use std::fs;

/// `SHT_SYMTAB` and `STT_FUNC` of elf(5).
const SYMBOL_TABLE: u32 = 2;
const FUNCTION: u8 = 2;
/// Sizes of a section header and of a symbol.
const SECTION: usize = 64;
const SYMBOL: usize = 24;
/// The module whose functions are shown, what precedes it where a trait is implemented, and what says nothing of who locks.
const MODULE: &str = "_native::load::";
const IMPLEMENTED: &str = "_$LT$";
const LOCK: &str = "system::lock::";

pub struct Functions(Vec<(usize, String)>);

impl Functions {
    pub fn of_this_program() -> Self {
        let file = fs::read("/proc/self/exe").unwrap();
        let number = |at: usize, bytes: usize| -> usize {
            (0..bytes)
                .map(|byte| usize::from(file[at + byte]) << (8 * byte))
                .sum()
        };
        let (headers, count, base) = (number(0x28, 8), number(0x3c, 2), base());
        let field =
            |section: usize, at: usize, bytes| number(headers + section * SECTION + at, bytes);
        let table = (0..count)
            .find(|section| field(*section, 4, 4) == SYMBOL_TABLE as usize)
            .unwrap();
        let names = field(field(table, 40, 4), 24, 8);
        let (begin, size) = (field(table, 24, 8), field(table, 32, 8));
        let mut found = Vec::new();
        for at in (begin..begin + size).step_by(SYMBOL) {
            if file[at + 4] & 15 == FUNCTION {
                let name = &file[names + number(at, 4)..];
                let end = name.iter().position(|byte| *byte == 0).unwrap();
                found.push((base + number(at + 8, 8), words(&name[..end])));
            }
        }
        found.sort_unstable();
        Self(found)
    }

    /// The innermost function of the load on a stack; the innermost of all where there is none.
    pub fn writer(&self, stack: &[usize]) -> String {
        let names = || stack.iter().filter_map(|address| self.at(*address));
        let within =
            names().filter_map(|name| name.trim_start_matches(IMPLEMENTED).strip_prefix(MODULE));
        let mut within = within.filter(|rest| !rest.starts_with(LOCK));
        let found = within.next().or_else(|| names().next());
        found.unwrap_or("?").to_owned()
    }

    fn at(&self, address: usize) -> Option<&str> {
        let index = self.0.partition_point(|(begin, _)| *begin <= address);
        self.0
            .get(index.checked_sub(1)?)
            .map(|(_, name)| name.as_str())
    }
}

/// The address at which this program was mapped.
fn base() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let own = fs::read_link("/proc/self/exe").unwrap();
    let first = maps
        .lines()
        .find(|line| line.ends_with(own.to_str().unwrap()))
        .unwrap();
    usize::from_str_radix(first.split('-').next().unwrap(), 16).unwrap()
}

/// The identifiers of a mangled name without its hash; each is written behind its length.
fn words(mangled: &[u8]) -> String {
    let text = std::str::from_utf8(mangled).unwrap_or("");
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(begin) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let digits = rest[begin..].bytes().take_while(u8::is_ascii_digit).count();
        let (length, tail) = rest[begin..].split_at(digits);
        let Some(word) = length
            .parse()
            .ok()
            .and_then(|length: usize| tail.get(..length))
        else {
            break;
        };
        found.push(word.replace("..", "::"));
        rest = &tail[word.len()..];
    }
    if found
        .last()
        .is_some_and(|word| word.len() == 17 && word.starts_with('h'))
    {
        found.pop();
    }
    found.join("::")
}
