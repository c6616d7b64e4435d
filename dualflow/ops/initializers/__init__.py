"""Initializers: functions of a shape and a dtype that return initial values of variables."""
