//! The native core of lunscope: exports only. `engine/_native.pyi` is its manual.

mod changed_rows;
mod codec;
mod counter_deltas;
mod exact;
mod load;
mod percentiles;
mod sample;

#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::changed_rows::changed_rows;
    #[pymodule_export]
    use super::counter_deltas::counter_deltas;
    #[pymodule_export]
    use super::percentiles::percentiles_of_rows;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::codec::register(module)?;
        super::exact::register(module)?;
        super::load::register(module)?;
        super::sample::register(module)
    }
}
