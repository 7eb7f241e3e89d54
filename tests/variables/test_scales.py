"""Words with an order come out from the least to the greatest; others are left without one."""

from __future__ import annotations

import pytest

from anyorder.variables.scales import in_known_order


@pytest.mark.parametrize(
    "ordered",
    [
        ["Strongly disagree", "Disagree", "Neither agree nor disagree", "Agree", "Strongly agree"],
        ["1 - Very dissatisfied", "2 - Dissatisfied", "3 - Neutral", "4 - Satisfied", "5 - Very satisfied"],
        ["never", "rarely", "sometimes", "often", "always"],
        ["nie", "selten", "manchmal", "oft", "immer"],
        ["XS", "S", "M", "L", "XL", "XXL"],
        ["Low", "Medium", "High", "Critical"],
        ["Po", "Fa", "TA", "Gd", "Ex"],
        ["F", "D", "C-", "C+", "B", "A-", "A", "A+"],
        ["CCC", "B+", "BB", "BBB-", "A", "AA+", "AAA"],
        ["<18", "18-24", "25-34", "35-44", "45+"],
        ["under 18", "18 to 24", "25 to 64", "65 and over"],
        ["$0-$9,999", "$10,000-$19,999", "$20,000-$49,999", "$50,000+"],
        ["0k-10k", "10k-50k", "50k+"],
        ["Preschool", "HS-grad", "Some-college", "Bachelors", "Masters", "Doctorate"],
        ["Jan", "Feb", "Mar", "Dec"],
        ["Monday", "Wednesday", "Sunday"],
        ["mild", "moderate", "severe"],
    ],
    ids=lambda ordered: ordered[0],
)
def test_known_orders(ordered: list[str]) -> None:
    assert in_known_order(sorted(ordered)) == ordered
    assert in_known_order(ordered[::-1]) == ordered


@pytest.mark.parametrize(
    "levels",
    [
        ["red", "green"],
        ["A", "B", "C"],
        ["A+", "B-", "O+", "AB-"],
        ["low"],
        ["low", "Low ", "high"],
        ["3-1", "0-0", "2-2"],
        ["10-20", "15-25", "30-40"],
        ["1.2.3", "1.10.0", "2.0.0"],
        ["never", "married", "divorced"],
        ["medium", "large", "red"],
    ],
    ids=lambda levels: levels[0],
)
def test_left_without_an_order(levels: list[str]) -> None:
    assert in_known_order(levels) is None
