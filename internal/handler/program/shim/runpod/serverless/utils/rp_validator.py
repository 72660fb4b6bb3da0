"""Checks an input against a schema of types, defaults and constraints."""

import json

UNEXPECTED_INPUT_ERROR = "Unexpected input. {} is not a valid input option."
MISSING_REQUIRED_ERROR = "{} is a required input."
MISSING_DEFAULT_ERROR = "Schema error, missing default value for {}."
MISSING_TYPE_ERROR = "Schema error, missing type for {}."
INVALID_TYPE_ERROR = "{} should be {} type, not {}."
CONSTRAINTS_ERROR = "{} does not meet the constraints."
SCHEMA_ERROR = "Schema error, {} is not a dictionary."


def validate(raw_input, schema):
    """{"validated_input": …} with the defaults filled in, or {"errors": […]}."""
    values = raw_input.copy()
    errors = [UNEXPECTED_INPUT_ERROR.format(key) for key in raw_input if key not in schema]
    rules = _parsed(schema, errors)
    for key, rule in rules.items():
        errors += _presence(key, rule, raw_input, values)
    for key, rule in rules.items():
        errors += _correctness(key, rule, values)
    return {"errors": errors} if errors else {"validated_input": values}


def _parsed(schema, errors):
    """The rules as dicts. Those that came as JSON text are parsed, also in the schema itself."""
    rules = {}
    for key, rule in list(schema.items()):
        if not isinstance(rule, dict):
            try:
                rule = schema[key] = json.loads(rule)
            except (TypeError, ValueError):
                rule = None
        if isinstance(rule, dict):
            rules[key] = rule
        else:
            errors.append(SCHEMA_ERROR.format(key))
    return rules


def _presence(key, rule, raw_input, values):
    if "type" not in rule:
        yield MISSING_TYPE_ERROR.format(key)
    if "required" not in rule:
        yield MISSING_REQUIRED_ERROR.format(key)
    elif key not in raw_input:
        if rule["required"]:
            yield MISSING_REQUIRED_ERROR.format(key)
        elif "default" in rule:
            values[key] = rule["default"]
        else:
            yield MISSING_DEFAULT_ERROR.format(key)


def _correctness(key, rule, values):
    if key in values and "type" in rule:
        wanted = rule["type"]
        if wanted is float and type(values[key]) is int:
            values[key] = float(values[key])
        # A value of the same type as the default passes, whatever the type says.
        if "default" in rule and isinstance(values[key], type(rule["default"])):
            return
        if not isinstance(values[key], wanted):
            yield INVALID_TYPE_ERROR.format(key, wanted, type(values[key]))
    if "constraints" in rule and not rule["constraints"](values.get(key)):
        yield CONSTRAINTS_ERROR.format(key)
