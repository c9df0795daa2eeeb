"""How a function becomes a tool: what its schema tells a client."""

import inspect

import pytest

from mam.surfaces.mcp.tools import all_tools

TOOLS = {tool.name: tool for tool in all_tools()}


def test_s004_3_force_is_optional_and_its_schema_says_the_default() -> None:
    schema = TOOLS["stop_agent"].parameters
    assert schema["required"] == ["agent_id"]
    assert schema["properties"]["force"]["default"] is False


@pytest.mark.parametrize("name", TOOLS)
def test_every_argument_says_what_it_is_and_what_it_is_without_being_given(name) -> None:
    tool = TOOLS[name]
    parameters = {**inspect.signature(tool.fn).parameters}
    del parameters["call"]
    assert list(tool.parameters["properties"]) == list(parameters)
    for argument, schema in tool.parameters["properties"].items():
        assert schema.get("description"), argument
        assert {"type", "anyOf"} & set(schema), argument
        if argument in tool.parameters.get("required", ()):
            assert parameters[argument].default is inspect.Parameter.empty
        else:
            assert "default" in schema, argument
            assert schema["default"] == parameters[argument].default
