"""Answers of the named accountants, as documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from p2pdp.privacy.contract import account as ask
from p2pdp.privacy.contract import accountant, checked, names
from p2pdp.report.display import Shown, facts_markup
from p2pdp.report.documents import plain
from p2pdp.report.page.markup import Markup
from p2pdp.report.page.words import number


@dataclass(frozen=True, slots=True, repr=False)
class Accounted(Shown):
    """One answer, with defaults among its inputs. `bound` is False for published formulas that prove nothing."""

    name: str
    inputs: dict[str, Any]
    outputs: dict[str, float]
    bound: bool
    assumptions: list[str]
    source: str

    def to_json(self) -> dict[str, Any]:
        document: dict[str, Any] = plain(asdict(self))
        return document

    def _said(self) -> list[str]:
        given = ", ".join(f"{name}={number(value)}" for name, value in self.inputs.items())
        found = ", ".join(f"{name} {number(value)}" for name, value in self.outputs.items())
        return [f"{self.name}, {given}: {found}{'' if self.bound else ', no bound'}"]

    def _markup(self) -> list[Markup]:
        return [facts_markup([*self.inputs.items(), *self.outputs.items(), ("source", self.source)])]

    def _rows(self) -> tuple[list[dict[str, Any]], None]:
        return [{**self.inputs, **self.outputs, "bound": self.bound}], None


def account(name: str, inputs: Mapping[str, Any]) -> Accounted:
    answer = ask(name, inputs)
    asked = {key: value for key, value in checked(accountant(name), inputs).items() if value is not None}
    return Accounted(name, asked, dict(answer.outputs), answer.bound, list(answer.assumptions), answer.source)


def accountants() -> list[dict[str, str]]:
    """Return every name with its one line."""
    return [{"name": name, "help": accountant(name).help} for name in names()]


def inputs_of(name: str) -> list[dict[str, Any]]:
    """Return what one accountant asks for."""
    return [
        {"name": one.name, "help": one.help, "range": one.range, "required": one.required, "default": one.default}
        for one in accountant(name).inputs
    ]
