//! Write protection of private memory, with a handler that notes every write and lets it through.

use std::ffi::c_void;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::SeqCst};

use crate::load::data::memory::Memory;

const PAGE: usize = 4096;
const LINE: usize = 64;
const MOST_RANGES: usize = 4096;
const MOST_NOTES: usize = 200_000;
const MOST_THREADS: usize = 64;
/// Functions on the stack of a write that are noted.
const DEPTH: usize = 12;
/// The trap flag of x86: the processor interrupts after the next instruction.
const TRAP_FLAG: i64 = 0x100;
/// glibc aligns the heaps of its threads to this (`HEAP_MAX_SIZE`, malloc/arena.c).
const HEAP_ALIGN: usize = 64 << 20;

/// One write.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Note {
    pub line: usize,
    pub thread: i32,
    pub stack: [usize; DEPTH],
}

/// The pages that a thread may write until its instruction is over.
#[repr(C)]
struct Step {
    thread: AtomicUsize,
    pages: [usize; 4],
    count: AtomicUsize,
    /// Writes so far.
    noted: AtomicUsize,
}

/// What the handlers need; in memory that is not protected, as forked children do not get it.
#[repr(C)]
struct Trap {
    ranges: [[usize; 2]; MOST_RANGES],
    range_count: usize,
    steps: [Step; MOST_THREADS],
    over: AtomicBool,
    next: AtomicUsize,
    notes: [Note; MOST_NOTES],
}

static TRAP: AtomicPtr<Trap> = AtomicPtr::new(std::ptr::null_mut());

unsafe extern "C" {
    /// The unwinder that the standard library is linked with (gcc, unwind.h).
    fn _Unwind_Backtrace(
        visit: unsafe extern "C" fn(*mut c_void, *mut c_void) -> i32,
        argument: *mut c_void,
    ) -> i32;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// Notes all writes to protected memory while something is done, which can ask how many a thread did so far. Once in a process.
pub fn writes_during(act: impl FnOnce(&dyn Fn(i32) -> usize)) -> Vec<Note> {
    let memory = Memory::new(size_of::<Trap>().next_multiple_of(PAGE)).unwrap();
    let trap = memory.base().cast::<Trap>().as_ptr();
    let ranges = ranges();
    assert!(ranges.len() <= MOST_RANGES, "{}", ranges.len());
    // SAFETY: the memory is large enough, aligned to a page and zeroed, which is a valid value of every field.
    let shown = unsafe { &mut *trap };
    shown.ranges[..ranges.len()].copy_from_slice(&ranges);
    shown.range_count = ranges.len();
    TRAP.store(trap, SeqCst);
    handle(libc::SIGSEGV, on_fault);
    handle(libc::SIGTRAP, on_step);
    protect_all(shown, libc::PROT_READ);
    let steps = &shown.steps;
    act(&|thread| {
        let is_of = |step: &&Step| step.thread.load(SeqCst) == thread.unsigned_abs() as usize;
        steps
            .iter()
            .find(is_of)
            .map_or(0, |step| step.noted.load(SeqCst))
    });
    shown.over.store(true, SeqCst);
    // A thread within its one instruction may still protect pages, where the kernel could then write nothing for us.
    while shown.steps.iter().any(|step| step.count.load(SeqCst) > 0) {
        std::thread::yield_now();
    }
    protect_all(shown, libc::PROT_READ | libc::PROT_WRITE);
    let count = shown.next.load(SeqCst).min(MOST_NOTES);
    let notes = shown.notes[..count].to_vec();
    // A thread may still be in a handler.
    std::mem::forget(memory);
    notes
}

/// Private writable memory but for stacks and for what forked children do not get.
fn ranges() -> Vec<[usize; 2]> {
    let text = fs::read_to_string("/proc/self/smaps").unwrap();
    let own = fs::read_link("/proc/self/exe").unwrap();
    let own = own.to_str().unwrap();
    let (mut found, mut before, mut of_library, mut fits) = (Vec::new(), (0, false), false, None);
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if let Some((begin, end)) = words[0].split_once('-') {
            let bounds = [begin, end].map(|word| usize::from_str_radix(word, 16).unwrap());
            let (name, follows) = (words.get(5).copied().unwrap_or(""), before.0 == bounds[0]);
            // Below every stack is a page without access; below the heap of a thread there may be one of its neighbour.
            let is_stack = follows && before.1 && bounds[0] % HEAP_ALIGN != 0;
            // The variables of a library lie behind its file; the unwinder, which the handler uses, has some.
            of_library = match name {
                "" => follows && of_library,
                "[heap]" => false,
                _ => name != own,
            };
            let fits_in = words[1] == "rw-p" && !of_library && !is_stack;
            fits = fits_in.then_some(bounds);
            before = (bounds[1], words[1] == "---p");
        } else if words[0] == "VmFlags:" && !words.contains(&"dc") {
            found.extend(fits.take());
        }
    }
    found
}

fn handle(signal: i32, handler: unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void)) {
    // SAFETY: the action is plain memory, set up here; the handler has the signature that SA_SIGINFO asks for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigfillset(&raw mut action.sa_mask);
        assert_eq!(
            libc::sigaction(signal, &raw const action, std::ptr::null_mut()),
            0
        );
    }
}

fn protect_all(trap: &Trap, protection: i32) {
    for [begin, end] in &trap.ranges[..trap.range_count] {
        protect(*begin, end - begin, protection);
    }
}

fn protect(begin: usize, length: usize, protection: i32) {
    // SAFETY: the pages are mapped; what writes to them meanwhile faults, which the handler expects.
    unsafe { libc::mprotect(begin as *mut c_void, length, protection) };
}

/// The state of the calling thread.
fn step(trap: &mut Trap) -> (&mut Step, i32) {
    // SAFETY: gettid takes nothing.
    let thread = unsafe { libc::gettid() };
    let wanted = thread.unsigned_abs() as usize;
    let mut index = wanted % MOST_THREADS;
    loop {
        let owner = trap.steps[index]
            .thread
            .compare_exchange(0, wanted, SeqCst, SeqCst);
        if owner.is_ok() || owner == Err(wanted) {
            return (&mut trap.steps[index], thread);
        }
        index = (index + 1) % MOST_THREADS;
    }
}

unsafe extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes both; the trap was stored before this handler was set, and is never freed.
    let (address, context, trap) = unsafe {
        (
            (*info).si_addr() as usize,
            &mut *context.cast::<libc::ucontext_t>(),
            &mut *TRAP.load(SeqCst),
        )
    };
    let known = &trap.ranges[..trap.range_count];
    if !known
        .iter()
        .any(|[begin, end]| (*begin..*end).contains(&address))
    {
        // SAFETY: a fault of another kind ends the process as it would without this handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    let registers = &mut context.uc_mcontext.gregs;
    let number = trap.next.fetch_add(1, SeqCst);
    let (step, thread) = step(trap);
    step.noted.fetch_add(1, SeqCst);
    let page = address & !(PAGE - 1);
    let count = step.count.load(SeqCst);
    if count < step.pages.len() {
        step.pages[count] = page;
        step.count.store(count + 1, SeqCst);
    }
    if let Some(note) = trap.notes.get_mut(number) {
        note.line = address & !(LINE - 1);
        note.thread = thread;
        let mut walk = Walk {
            stack: &mut note.stack,
            from: usize::try_from(registers[libc::REG_RIP as usize]).unwrap_or(0),
            count: None,
        };
        // SAFETY: `visit` gets the pointer back while the walk lives.
        unsafe { _Unwind_Backtrace(visit, (&raw mut walk).cast()) };
    }
    registers[libc::REG_EFL as usize] |= TRAP_FLAG;
    protect(page, PAGE, libc::PROT_READ | libc::PROT_WRITE);
}

unsafe extern "C" fn on_step(_: i32, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: as in `on_fault`.
    let (context, trap) = unsafe {
        (
            &mut *context.cast::<libc::ucontext_t>(),
            &mut *TRAP.load(SeqCst),
        )
    };
    context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP_FLAG;
    let over = trap.over.load(SeqCst);
    let (step, _) = step(trap);
    if !over {
        for page in &step.pages[..step.count.load(SeqCst)] {
            protect(*page, PAGE, libc::PROT_READ);
        }
    }
    step.count.store(0, SeqCst);
}

/// The functions that led to a write, from the one that did it.
struct Walk<'a> {
    stack: &'a mut [usize; DEPTH],
    from: usize,
    count: Option<usize>,
}

unsafe extern "C" fn visit(context: *mut c_void, walk: *mut c_void) -> i32 {
    // SAFETY: the unwinder passes its context and the walk of `on_fault`.
    let (address, walk) = unsafe { (_Unwind_GetIP(context), &mut *walk.cast::<Walk<'_>>()) };
    if address == walk.from {
        walk.count = Some(0);
    }
    if let Some(count) = &mut walk.count {
        if *count == DEPTH {
            return 1;
        }
        walk.stack[*count] = address;
        *count += 1;
    }
    0
}
