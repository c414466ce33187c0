//! `FlowShare`.

use std::sync::Arc;

use pyo3::prelude::*;

use super::numbers::{above_0, seconds};
use crate::load::pace::flow;

/// The part of one load in a flow, for the `flow` of its settings.
#[pyclass(module = "engine._native", frozen)]
pub struct FlowShare(pub Arc<flow::FlowShare>);

#[pyfunction]
pub fn flow_shares(loads: Vec<(i64, Option<f64>, bool)>) -> PyResult<Vec<FlowShare>> {
    let loads: Vec<_> = loads.into_iter().map(checked).collect::<PyResult<_>>()?;
    let shares = flow::shares(&loads).into_iter();
    Ok(shares.map(|share| FlowShare(Arc::new(share))).collect())
}

fn checked((weight, wait_s, ends_others): (i64, Option<f64>, bool)) -> PyResult<flow::Terms> {
    let wait = wait_s.map(|wait_s| seconds("wait_s", wait_s)).transpose()?;
    Ok(flow::Terms {
        weight: above_0("weight", weight)?.get(),
        wait_ns: wait.map(|wait| u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)),
        ends_others,
    })
}
