"""Values of fields of a panel by name, stored from one opening of a trace to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QTabBar,
    QTabWidget,
    QWidget,
)

Value = str | int | bool


def values_of(panel: QWidget, names: Iterable[str]) -> dict[str, Value]:
    """Return the values of fields.

    Args:
        panel: What has the fields.
        names: Names of attributes, which may have dots in them.
    """
    return {name: _value(attrgetter(name)(panel)) for name in names}


def put_values(panel: QWidget, names: Iterable[str], values: Mapping[str, Value]) -> None:
    """Give fields values, as if the user did; values of another type, or that a field does not have, are left out."""
    for name in names:
        value = values.get(name)
        if value is not None and value != _value(field := attrgetter(name)(panel)):
            _put(field, value)


def _value(field: object) -> Value:
    if isinstance(field, QTabBar | QTabWidget):
        return field.currentIndex()
    if isinstance(field, QComboBox):
        return field.currentText()
    if isinstance(field, QCheckBox):
        return field.isChecked()
    if isinstance(field, QLineEdit):
        return field.text()
    if isinstance(field, QSpinBox):
        return field.value()
    if isinstance(field, QButtonGroup):
        return field.checkedId()
    assert isinstance(field, QPlainTextEdit), f"{type(field).__name__} has no value to keep"
    return field.toPlainText()


def _put(field: object, value: Value) -> None:
    if isinstance(field, QTabBar | QTabWidget) and type(value) is int and 0 <= value < field.count():
        field.setCurrentIndex(value)
    elif isinstance(field, QComboBox) and isinstance(value, str):
        index = field.findText(value)
        if index >= 0:
            field.setCurrentIndex(index)
    elif isinstance(field, QCheckBox) and isinstance(value, bool):
        field.setChecked(value)
    elif isinstance(field, QLineEdit) and isinstance(value, str):
        field.setText(value)
        field.editingFinished.emit()
    elif isinstance(field, QSpinBox) and type(value) is int:
        field.setValue(min(max(value, field.minimum()), field.maximum()))
    elif isinstance(field, QPlainTextEdit) and isinstance(value, str):
        field.setPlainText(value)
    elif isinstance(field, QButtonGroup) and type(value) is int and field.button(value) is not None:
        field.button(value).click()
