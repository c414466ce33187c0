//! The native core of lunscope: exports only. `engine/_native.pyi` is its manual.

mod codec;
mod exact;
mod load;
mod sample;

#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::codec::register(module)?;
        super::exact::register(module)?;
        super::load::register(module)?;
        super::sample::register(module)
    }
}
