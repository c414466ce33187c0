"""What subjects declare fits together: a new one that forgets a raw table, or takes the option of another, is found."""

from __future__ import annotations

import importlib
import pkgutil

import collectors.tables
from collectors.model import Schema
from collectors.registry import TABLES, subject_of
from tui.commands.report import command


def test_every_raw_table_belongs_to_a_subject() -> None:
    modules = pkgutil.walk_packages(collectors.tables.__path__, "collectors.tables.")
    objects = [value for module in modules for value in vars(importlib.import_module(module.name)).values()]
    declared = {value.name for value in objects if isinstance(value, Schema)}
    subjects = [subject_of(table) for table in TABLES]
    recorded = {raw.name for subject in subjects for raw in (*subject.raw, *subject.sampled_raw, *subject.exact_raw)}
    assert declared == recorded


def test_each_report_has_an_option_of_its_own() -> None:
    options = [option for parameter in command.params for option in parameter.opts]
    assert len(options) == len(set(options))
    assert {report.option for table in TABLES if (report := subject_of(table).report)} <= set(options)
