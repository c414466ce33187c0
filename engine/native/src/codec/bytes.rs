//! Bounded reading and writing of the byte strings that session files hold.
//!
//! Everything read here may come from a hostile file: each length is checked before it is used, and an output is never
//! larger than its caller allows.

use std::cell::RefCell;

/// Why encoded bytes are invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage(pub &'static str);

pub type Checked<T> = Result<T, Damage>;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const ZSTD_LEVEL: i32 = 3;

thread_local! {
    /// A context costs far more to build than a tick costs to compress.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Writes `value` in 7-bit groups, low first.
pub fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Writes a byte string, compressed where that makes it shorter.
pub fn write_section(out: &mut Vec<u8>, raw: &[u8]) {
    match compress(raw) {
        Some(packed) if packed.len() < raw.len() => {
            write_varint(out, (packed.len() as u64) << 1 | 1);
            out.extend_from_slice(&packed);
        }
        _ => {
            write_varint(out, (raw.len() as u64) << 1);
            out.extend_from_slice(raw);
        }
    }
}

/// One zstd frame without its magic number, or nothing when zstd fails.
pub fn compress(raw: &[u8]) -> Option<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = zstd::bulk::Compressor::new(ZSTD_LEVEL).ok();
        }
        let mut frame = slot.as_mut()?.compress(raw).ok()?;
        frame.drain(..ZSTD_MAGIC.len());
        Some(frame)
    })
}

/// Undoes [`compress`] into at most `limit` bytes.
pub fn decompress(packed: &[u8], limit: usize) -> Checked<Vec<u8>> {
    let mut frame = Vec::with_capacity(ZSTD_MAGIC.len() + packed.len());
    frame.extend_from_slice(&ZSTD_MAGIC);
    frame.extend_from_slice(packed);
    let size =
        zstd::zstd_safe::get_frame_content_size(&frame).map_err(|_| Damage("not a zstd frame"))?;
    let size = size
        .and_then(|size| usize::try_from(size).ok())
        .ok_or(Damage("zstd frame without a length"))?;
    if size > limit {
        return Err(Damage("larger than allowed"));
    }
    let raw = DECOMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = zstd::bulk::Decompressor::new().ok();
        }
        slot.as_mut()?.decompress(&frame, size).ok()
    });
    raw.filter(|raw| raw.len() == size)
        .ok_or(Damage("zstd frame does not decompress"))
}

/// A cursor over untrusted bytes.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn take(&mut self, length: usize) -> Checked<&'a [u8]> {
        if length > self.0.len() {
            return Err(Damage("ends too early"));
        }
        let (head, tail) = self.0.split_at(length);
        self.0 = tail;
        Ok(head)
    }

    pub fn varint(&mut self) -> Checked<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = u64::from(self.take(1)?[0]);
            if shift == 63 && byte > 1 {
                break;
            }
            value |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Damage("number too long"))
    }

    /// A varint that counts something, at most `limit`.
    pub fn count(&mut self, limit: usize) -> Checked<usize> {
        usize::try_from(self.varint()?)
            .ok()
            .filter(|&count| count <= limit)
            .ok_or(Damage("count too large"))
    }

    /// Undoes [`write_section`] where that gives at most `limit` bytes.
    pub fn section(&mut self, limit: usize) -> Checked<Vec<u8>> {
        let header = self.varint()?;
        let stored = usize::try_from(header >> 1).map_err(|_| Damage("count too large"))?;
        let bytes = self.take(stored)?;
        match header & 1 {
            1 => decompress(bytes, limit),
            _ if bytes.len() > limit => Err(Damage("larger than allowed")),
            _ => Ok(bytes.to_vec()),
        }
    }

    /// Fails unless everything was read.
    pub fn finish(self) -> Checked<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Damage("bytes left over"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_come_back_at_every_length() {
        for value in (0..64).map(|bit| 1_u64 << bit).chain([0, u64::MAX]) {
            let mut bytes = Vec::new();
            write_varint(&mut bytes, value);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.varint(), Ok(value));
            assert_eq!(reader.finish(), Ok(()));
        }
    }

    #[test]
    fn overlong_and_cut_varints_are_damage() {
        assert!(Reader::new(&[0xff; 11]).varint().is_err());
        assert!(
            Reader::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2])
                .varint()
                .is_err()
        );
        assert!(Reader::new(&[0x80]).varint().is_err());
    }

    #[test]
    fn a_bomb_is_refused_before_it_is_unpacked() {
        let bomb = compress(&vec![0; 1 << 24]).unwrap();
        assert!(bomb.len() < 4096);
        assert_eq!(
            decompress(&bomb, 1 << 20),
            Err(Damage("larger than allowed"))
        );
    }
}
